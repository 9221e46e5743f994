package cli

import (
	"errors"
	"strings"
	"testing"
)

// replyError is an error reply of a server.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

// TestReplyText checks that an operator sees the remedy at the end of a long reply, and that no
// reply controls the terminal.
func TestReplyText(t *testing.T) {
	long := "ERR connections may belong to clients: " + strings.Repeat("10.0.0.9:51712 name=billing, ", 10) + "; repoint them"
	for _, test := range []struct {
		err  error
		want string
	}{
		{replyError(long), long},
		{replyError("ERR \x1b[31m\r\nred"), `ERR \x1b[31m\x0d\x0ared`},
		{replyError(strings.Repeat("x", maxReply+1)), strings.Repeat("x", maxReply)},
		{errors.New("EOF"), "connection closed"},
	} {
		if got := replyText(test.err); got != test.want {
			t.Errorf("%.50q…: got %q, want %q", test.err, got, test.want)
		}
	}
}
