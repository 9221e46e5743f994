//go:build integration

package guardschedules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestOwnNames takes a lock whose name is similar to the proxies' own keys. The lock is refused
// with an error that contains the name, or kept like any other lock when C is flushed.
func TestOwnNames(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"redlock-proxy:k", "redlock-proxy:turn:k", "redlock-proxy:offer:k"} {
		t.Run(key, func(t *testing.T) {
			f := startFleet(t, 2, nil)
			if isRefusedByName(kit.Do(t, kit.Connect(t, f.proxies[0]), "LOCK", key, "token", "PX", "1"), key) {
				return
			}
			l := f.lockOnThree(t, key, time.Minute)
			mustSend(t, f.masters[masterC], "FLUSHALL")
			f.wantKept(t, l, kit.Connect(t, f.proxies[1]))
		})
	}
}

// TestOwnPrefix sets a key-prefix that makes every lock look like the proxies' own keys. The prefix
// is refused at the start, or the locks are kept.
func TestOwnPrefix(t *testing.T) {
	t.Parallel()
	const prefix = "redlock-proxy:"
	f := startMasters(t, nil)
	proxy, err := harness.StartProxy(harness.ProxyOptions{Masters: kit.LinkURLs(f.links),
		Args: []string{"--key-prefix", prefix}})
	if err != nil {
		if text := err.Error(); !strings.Contains(text, "key-prefix") || !strings.Contains(text, prefix) {
			t.Errorf("the error does not name the setting and the prefix: %v", err)
		}
		return
	}
	kit.Must(t, proxy.Close())
	f.startProxy(t, "--key-prefix", prefix)
	f.startProxy(t, "--key-prefix", prefix)
	f.wantVoting(t, masterCount)
	f.cutOff(t, masterD, masterE)
	f.wantVoting(t, 3)
	l := f.lock(t, "k", time.Minute)
	f.reconnect(t, masterD, masterE)
	f.wantVoting(t, masterCount)
	mustSend(t, f.masters[masterC], "FLUSHALL")
	f.wantKept(t, l, kit.Connect(t, f.proxies[1]))
}

// TestLockOnOwnKey takes a lock with the name of one of the proxies' own keys on the masters. The
// lock is refused with an error that contains the name. The attempt has no side effect: a master
// that loses its data still catches up, including the keys in other databases.
func TestLockOnOwnKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"databases", "marker", "quarantine", "longest", "catch-up"} {
		t.Run(key, func(t *testing.T) {
			key := "redlock-proxy:" + key
			f := startFleet(t, 2, nil)
			client := kit.Connect(t, f.proxies[0])
			if reply := kit.Do(t, client, "LOCK", key, "token", "PX", "600000"); !isRefusedByName(reply, key) {
				t.Errorf("LOCK %s: got %#v, want an error that names it", key, reply)
			}
			kit.Want(t, client, "OK", "SELECT", "1")
			if reply := kit.Do(t, client, "LOCK", "k", "token", "PX", "600000"); replyKind(reply) == "NOQUORUM" {
				t.Errorf("LOCK in database 1: %v", reply)
			}
			for _, master := range []int{masterC, masterA} {
				kit.Must(t, f.masters[master].Restart())
				kit.Eventually(t, func() error { return checkLockHeld(t, f.masters[master], "1", "k", "token") })
				f.wantVoting(t, masterCount)
			}
		})
	}
}

// TestOwnNamesAsLockKeys checks that ordinary commands refuse the proxies' own keys if all keys are
// lock keys.
func TestOwnNamesAsLockKeys(t *testing.T) {
	t.Parallel()
	upstream := redistest.New(t, redistest.Options{})
	f := startFleet(t, 1, nil, "--lock-keys", "*", "--upstream", upstream.URL())
	client := kit.Connect(t, f.proxies[0])
	const key = "redlock-proxy:k"
	for _, command := range [][]string{
		{"SET", key, "v", "NX", "PX", "60000"}, {"SET", key, "v", "PX", "60000"}, {"GETSET", key, "v"},
		{"PEXPIRE", key, "1"},
		{"EVAL", "return redis.call('del', KEYS[1])", "1", key}, {"DEL", key}, {"DEL", "k", key},
	} {
		if reply := kit.Do(t, client, command...); !isRefusedByName(reply, key) {
			t.Errorf("%v: got %#v, want an error that names the key", command, reply)
		}
	}
}

// isRefusedByName reports whether the reply is an error that contains the name, other than
// NOQUORUM.
func isRefusedByName(reply any, key string) bool {
	failure, bad := reply.(redistest.RespError)
	return bad && replyKind(reply) != "NOQUORUM" && strings.Contains(string(failure), key)
}

// checkLockHeld returns an error unless a master has a lock in a database.
func checkLockHeld(t *testing.T, master *redistest.Server, db, key, token string) error {
	t.Helper()
	client, err := redistest.Dial(master.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	kit.Want(t, client, "OK", "SELECT", db)
	if value, _ := kit.Do(t, client, "GET", key).(string); !strings.HasSuffix(value, token) {
		return fmt.Errorf("master %s has %q under %s in database %s", master.Addr(), value, key, db)
	}
	return nil
}
