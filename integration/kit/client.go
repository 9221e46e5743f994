package kit

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

// Dial connects to a server. It closes the connection when the test ends, unless the test has
// closed it.
func Dial(t *testing.T, addr string) *redistest.Client {
	t.Helper()
	client, err := redistest.Dial(addr, WaitLimit)
	Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Connect connects to a proxy like Dial.
func Connect(t *testing.T, proxy *harness.Proxy) *redistest.Client {
	t.Helper()
	return Dial(t, proxy.Addr())
}

// Do sends one command and returns its reply. An error of the connection ends the test.
func Do(t *testing.T, client *redistest.Client, command ...string) any {
	t.Helper()
	reply, err := client.Do(command...)
	Must(t, err)
	return reply
}

// Want sends one command and requires this reply, which must not be an array.
func Want(t *testing.T, client *redistest.Client, reply any, command ...string) {
	t.Helper()
	if got := Do(t, client, command...); got != reply {
		t.Fatalf("%v: got %#v, want %#v", command, got, reply)
	}
}

// GrantReply stands for a reply in WantReply: a validity of nearly ten seconds.
const GrantReply = "a validity of nearly 10000 ms"

// WantReply sends a command and requires this reply, which may be an array, or GrantReply.
func WantReply(t *testing.T, client *redistest.Client, command string, reply any) {
	t.Helper()
	got := Do(t, client, strings.Fields(command)...)
	if reply != any(GrantReply) {
		if !reflect.DeepEqual(got, reply) {
			t.Fatalf("%s: got %#v, want %#v", command, got, reply)
		}
		return
	}
	if ms, ok := got.(int64); !ok || ms <= 9000 || ms >= 10000 {
		t.Fatalf("%s: got %#v, want %s", command, got, GrantReply)
	}
}

// IsNoQuorum reports whether a reply is NOQUORUM: the outcome of the command is unknown.
func IsNoQuorum(reply any) bool {
	failure, failed := reply.(redistest.RespError)
	return failed && FirstWord(string(failure)) == "NOQUORUM"
}

// IsLate reports whether a reply says that a majority agreed later than a round may take. The outcome
// is then unknown. On a busy machine this happens without a fault.
func IsLate(reply any) bool {
	failure, failed := reply.(redistest.RespError)
	return failed && IsLateText(string(failure))
}

// IsLateText is IsLate for the text of a reply.
func IsLateText(text string) bool { return strings.Contains(text, "agreed only after") }

// DoInTime sends a command until its reply is not late, for at most WaitLimit. If wasLate is true, an
// earlier try may have taken effect.
func DoInTime(t *testing.T, client *redistest.Client, command ...string) (reply any, wasLate bool) {
	t.Helper()
	for startedAt := time.Now(); ; wasLate = true {
		if reply = Do(t, client, command...); !IsLate(reply) || time.Since(startedAt) > WaitLimit {
			return reply, wasLate
		}
	}
}

// Release sends UNLOCK by do until the reply is not late, for at most WaitLimit. It returns an error
// unless the lock was released. The reply 0 is an error, too, unless an earlier reply was late, or
// mayBeFree is true.
func Release(do func(...string) (any, error), key, token string, mayBeFree bool) error {
	for startedAt := time.Now(); ; mayBeFree = true {
		reply, err := do("UNLOCK", key, token)
		switch {
		case err == nil && (reply == any(int64(1)) || mayBeFree && reply == any(int64(0))):
			return nil
		case err != nil || !IsLate(reply) || time.Since(startedAt) > WaitLimit:
			return errors.Join(fmt.Errorf("UNLOCK %s %s: %s", key, token, ReplyText(reply)), err)
		}
	}
}

// WantReleased releases a lock, and requires that it was held.
func WantReleased(t *testing.T, client *redistest.Client, key, token string) {
	t.Helper()
	Must(t, Release(client.Do, key, token, false))
}

// WantGrant sends a LOCK or EXTEND, requires a grant, and returns its validity.
func WantGrant(t *testing.T, client *redistest.Client, command ...string) time.Duration {
	t.Helper()
	reply, _ := DoInTime(t, client, command...)
	ms, ok := reply.(int64)
	if !ok || ms <= 0 {
		t.Fatalf("%v: got %#v, want a validity", command, reply)
	}
	return time.Duration(ms) * time.Millisecond
}

// WantPrefix sends a command and requires a reply that begins with want, or an empty reply if want
// is empty. The words of the command are separated by |, or by blanks if command contains no |.
func WantPrefix(t *testing.T, client *redistest.Client, command, want string) {
	t.Helper()
	words := strings.Fields(command)
	if strings.Contains(command, "|") {
		words = strings.Split(command, "|")
	}
	if got := ReplyText(Do(t, client, words...)); !strings.HasPrefix(got, want) || want == "" && got != "" {
		t.Errorf("%s: %q, want %q", command, got, want)
	}
}

// ReplyText returns a reply as the text that tests compare. A refusal of permissions gets Redis
// 7.0's text, and nil becomes "nil".
func ReplyText(reply any) string {
	switch reply := reply.(type) {
	case nil:
		return "nil"
	case redistest.RespError:
		return normalizeRefusal(string(reply))
	}
	return fmt.Sprint(reply)
}

// FirstWord returns the first word of an error reply, such as NOQUORUM.
func FirstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// normalizeRefusal returns a NOPERM error of any Redis version with Redis 7.0's text.
func normalizeRefusal(text string) string {
	const refusalText = "NOPERM this user has no permissions"
	text = strings.Replace(text, " command or its subcommand", " command", 1) // Redis 6.0
	text = refusalPattern.ReplaceAllString(text, refusalText)
	text = strings.Replace(text, "NOPERM No permissions to access a key",
		refusalText+" to access one of the keys used as arguments", 1)
	return strings.Replace(text, "NOPERM No permissions to access a channel",
		refusalText+" to access one of the channels used as arguments", 1)
}

var refusalPattern = regexp.MustCompile(`NOPERM User \S+ has no permissions`)
