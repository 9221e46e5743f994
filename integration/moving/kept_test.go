//go:build integration

package moving

import (
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// kept is a lock that is held during all moves, with the commands that set and read it.
type kept struct {
	key        string
	make, read []string
	// want is the reply to read, as text.
	want string
	ends bool
}

var keepers = []kept{
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

const keptFor = time.Hour

// ends is the range in which a key expires, by the test's clock. endless: never.
type ends struct {
	from, to time.Time
	endless  bool
}

// look fails the test if a kept lock has changed, and returns when the kept locks expire.
func look(t *testing.T, client *redistest.Client) map[string]ends {
	t.Helper()
	all := map[string]ends{}
	for _, k := range keepers {
		if got := kit.Text(kit.Do(t, client, k.read...)); got != k.want {
			t.Errorf("%s: got %q, want %q", k.key, got, k.want)
		}
		sent := time.Now()
		left, _ := kit.Do(t, client, "PTTL", k.key).(int64)
		received := time.Now()
		if left == -1 == k.ends {
			t.Errorf("%s: PTTL is %d", k.key, left)
		}
		all[k.key] = ends{sent.Add(time.Duration(left) * time.Millisecond),
			received.Add(time.Duration(left+1) * time.Millisecond), left == -1}
	}
	return all
}
