//go:build integration

package moving

import (
	"errors"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// heldLock is a lock that is held during all moves, with the commands that set and read it.
type heldLock struct {
	key                     string
	setCommand, readCommand []string
	// want is the reply to readCommand, as text.
	want    string
	expires bool
}

var heldLocks = []heldLock{
	{"lock:kept:text", []string{"SET", "lock:kept:text", "me"}, []string{"GET", "lock:kept:text"}, "me", true},
	{"lock:kept:endless", []string{"SET", "lock:kept:endless", "me"}, []string{"GET", "lock:kept:endless"}, "me", false},
	{"lock:kept:hash", []string{"HSET", "lock:kept:hash", "a:1", "2", "b", "x"}, []string{"HGETALL", "lock:kept:hash"},
		"[a:1 2 b x]", true},
	{"lock:kept:sorted", []string{"ZADD", "lock:kept:sorted", "1732620000000.5", "a", "-inf", "b"},
		[]string{"ZRANGE", "lock:kept:sorted", "0", "-1", "WITHSCORES"}, "[b -inf a 1732620000000.5]", true},
	{"lock:kept:list", []string{"RPUSH", "lock:kept:list", "a", "", "\x00\r\n\xff"},
		[]string{"LRANGE", "lock:kept:list", "0", "-1"}, "[a  \x00\r\n\xff]", false},
	{"lock:kept:set", []string{"SADD", "lock:kept:set", "one"}, []string{"SMEMBERS", "lock:kept:set"}, "[one]", true},
}

const heldLockTTL = time.Hour

// expiryRange is the range in which a key expires, by the test's clock. If withoutTTL is set, the
// key never expires.
type expiryRange struct {
	from, to   time.Time
	withoutTTL bool
}

// wantHeldLocks fails the test if one of the held locks has changed, and returns the ranges of
// their expiry times. A reply of NOQUORUM is unknown: while some masters do not vote, the state of a
// key can be undetermined. So it repeats the request, for at most maxRecovery.
func wantHeldLocks(t *testing.T, client *redistest.Client) map[string]expiryRange {
	t.Helper()
	ranges := map[string]expiryRange{}
	for _, k := range heldLocks {
		reply, _, _ := determinedReply(t, client, k.readCommand...)
		if got := kit.ReplyText(reply); got != k.want {
			t.Errorf("%s: got %q, want %q", k.key, got, k.want)
		}
		reply, sent, received := determinedReply(t, client, "PTTL", k.key)
		ttl, _ := reply.(int64)
		if ttl == -1 == k.expires {
			t.Errorf("%s: PTTL is %d", k.key, ttl)
		}
		ranges[k.key] = expiryRange{sent.Add(time.Duration(ttl) * time.Millisecond),
			received.Add(time.Duration(ttl+1) * time.Millisecond), ttl == -1}
	}
	return ranges
}

// determinedReply returns the first reply other than NOQUORUM, with the times when its request was
// sent and when it was received.
func determinedReply(t *testing.T, client *redistest.Client, command ...string) (reply any, sent, received time.Time) {
	t.Helper()
	kit.AwaitWithin(t, maxRecovery, func() error {
		sent = time.Now()
		reply = kit.Do(t, client, command...)
		received = time.Now()
		if kit.IsNoQuorum(reply) {
			return errors.New(kit.ReplyText(reply))
		}
		return nil
	})
	return reply, sent, received
}
