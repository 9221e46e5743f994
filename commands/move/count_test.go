package move

import (
	"fmt"
	"testing"
)

// TestCountLockKeys checks that CountLockKeys finds lock keys in all databases, among the first
// 100,000 keys.
func TestCountLockKeys(t *testing.T) {
	r := newTestBench(t)
	conn, err := r.connect(t.Context())
	mustSucceed(t, err)
	defer conn.Close()
	for _, c := range []struct {
		do   []string
		want string
	}{
		{[]string{"SET", "a", "v"}, `0 "" false <nil>`},
		{[]string{"SELECT", "3"}, `0 "" false <nil>`},
		{[]string{"SET", "lock:a", "v"}, `1 "lock:a" false <nil>`},
		{[]string{"EVAL",
			fmt.Sprintf("for i = 1, %d do redis.call('SET', 'x' .. i, 'v') end redis.call('DEL', 'lock:a')",
				maxCounted+10*scanCount), "0"}, `0 "" true <nil>`},
	} {
		r.do(c.do...)
		n, example, more, err := CountLockKeys(t.Context(), conn, []string{"lock:*"})
		if got := fmt.Sprintf("%d %q %v %v", n, example, more, err); got != c.want {
			t.Errorf("after %.3q: got %s, want %s", c.do, got, c.want)
		}
	}
}
