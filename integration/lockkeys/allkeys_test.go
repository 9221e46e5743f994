//go:build integration

package lockkeys

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// resetAllScript is equivalent to python-redis-lock's script: it removes all locks and signals
// waiters.
const resetAllScript = `local held = redis.call('keys', 'lock:*')
for _, lock in pairs(held) do
  local signal = 'lock-signal:' .. string.sub(lock, 6)
  redis.call('del', signal)
  redis.call('lpush', signal, 1)
  redis.call('expire', signal, 1)
  redis.call('del', lock)
end
return #held`

// TestAllKeys checks commands on all keys with real masters. Recently removed keys still have cells
// on the masters, but no command returns them. Without a majority these commands get NOQUORUM, but
// a flush still empties the upstream.
func TestAllKeys(t *testing.T) {
	upstream := redistest.New(t, redistest.Options{})
	f := kit.StartFleet(t, "--upstream", upstream.URL(), "--lock-keys", "lock:*")
	f.WantVoting(t, 5)
	client := kit.Connect(t, f.Proxies[0])
	kit.Want(t, client, "OK", "SET", "data", "x")
	for i := range 1200 {
		kit.Want(t, client, "OK", "SET", fmt.Sprint("lock:", i), "t", "PX", "600000")
	}
	kit.Want(t, client, int64(1201), "DBSIZE")
	keys, cursor := map[string]bool{}, "0"
	for first := true; first || cursor != "0"; first = false {
		page := kit.Do(t, client, "SCAN", cursor).([]any)
		cursor = page[0].(string)
		for _, key := range page[1].([]any) {
			keys[key.(string)] = true
		}
	}
	if len(keys) != 1201 {
		t.Errorf("SCAN told %d keys", len(keys))
	}
	kit.Want(t, client, "OK", "FLUSHDB")
	kit.Want(t, client, int64(0), "DBSIZE")
	for _, key := range []string{"lock:a", "lock:b"} {
		kit.Want(t, client, "OK", "SET", key, "t", "PX", "600000")
	}
	kit.Want(t, client, int64(2), "EVAL", resetAllScript, "0")
	kit.Want(t, client, int64(0), "EXISTS", "lock:a", "lock:b")

	for _, db := range []string{"3", "9", "0"} { // FLUSHALL finds the databases on the masters
		kit.Want(t, client, "OK", "SELECT", db)
		kit.Want(t, client, "OK", "SET", "lock:of"+db, "t", "PX", "600000")
	}
	kit.Want(t, client, "OK", "FLUSHALL")
	for _, db := range []string{"3", "9", "0"} {
		kit.Want(t, client, "OK", "SELECT", db)
		kit.Want(t, client, int64(0), "EXISTS", "lock:of"+db)
	}

	kit.Want(t, client, "OK", "SET", "lock:a", "t", "PX", "600000")
	kit.Want(t, client, "OK", "SET", "data", "x")
	for _, m := range f.Masters[:len(f.Masters)/2+1] {
		kit.NoError(t, m.Kill())
	}
	for _, words := range [][]string{{"DBSIZE"}, {"KEYS", "*"}, {"SCAN", "0"}, {"FLUSHALL"}} {
		if reply, err := client.Do(words...); !strings.Contains(fmt.Sprint(reply, err), "NOQUORUM ") {
			t.Errorf("%s without a majority: %v %v", words, reply, err)
		}
	}
	kit.Want(t, client, nil, "GET", "data")
}
