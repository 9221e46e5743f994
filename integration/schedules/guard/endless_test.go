//go:build integration

package guardschedules

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// endlessKeys returns a key without an expiry in its own cell, and a key without an expiry in the
// cell of a lock.
func endlessKeys() map[string]struct{ key, sameTag, cell string } {
	return map[string]struct{ key, sameTag, cell string }{
		"a key":            {"lock:k", "", "lock:k"},
		"a key with a tag": {"q:{lock:k}", "lock:k", "lock:k"},
	}
}

// startWithEndlessKey starts a fleet, and sets a key without an expiry while D and E are
// unreachable. So only A, B and C have the key.
func startWithEndlessKey(t *testing.T, key string) *fleet {
	t.Helper()
	f := startFleet(t, 2, nil, "--lock-keys", "lock:*", "--lock-keys", "*{lock:*", "--lock-tags", "*", "--max-ttl", "10s")
	f.cutOff(t, masterD, masterE)
	f.wantVoting(t, 3)
	kit.Want(t, f.statusClients[0], "OK", "SET", key, "for ever")
	return f
}

// TestCopiesOfEndlessKey checks that the proxy that set the key copies it to D and E when they are
// reachable again. Then C may restart without its data.
func TestCopiesOfEndlessKey(t *testing.T) {
	for name, test := range endlessKeys() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startWithEndlessKey(t, test.key)
			f.reconnect(t, masterD, masterE)
			for _, i := range []int{masterD, masterE} {
				kit.Eventually(t, func() error {
					if kit.CheckAbsent(f.masters[i], test.cell) == nil {
						return fmt.Errorf("master %d does not have the key", i)
					}
					return nil
				})
			}
			kit.Must(t, f.masters[masterC].Kill())
			kit.Must(t, f.masters[masterC].Restart())
			f.wantVoting(t, masterCount)
			for _, client := range f.statusClients {
				kit.Want(t, client, "for ever", "GET", test.key)
			}
			kit.Want(t, f.statusClients[1], "OK", "SET", test.key, "anew")
			kit.Want(t, f.statusClients[0], "anew", "GET", test.key)
		})
	}
}

// TestEndlessKeyOnBareQuorum kills the proxy that set the key before D and E are reachable again.
// Then C restarts without its data. A and B are no majority, and no proxy knows C's lost data. A, B
// and C may have granted the lock, or C, D and E may have released it. So C gets a copy that does
// not vote. The key stays undetermined until an operator removes it on all masters. This applies to
// all keys of a tag, including keys with an expiry. Keys with an expiry are undetermined only until
// they expire, and keys on all five masters outlast any two restarts.
func TestEndlessKeyOnBareQuorum(t *testing.T) {
	for name, test := range endlessKeys() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startWithEndlessKey(t, test.key)
			client := f.statusClients[1]
			kit.Must(t, f.proxies[0].Kill())
			f.proxies, f.statusClients = f.proxies[1:], f.statusClients[1:]
			f.reconnect(t, masterD, masterE)
			f.wantVoting(t, masterCount)
			kit.Want(t, client, "for ever", "GET", test.key)
			for _, i := range []int{masterD, masterE} {
				// No proxy copies the key to D and E later.
				kit.Must(t, kit.CheckAbsent(f.masters[i], test.cell))
			}
			kit.Must(t, f.masters[masterC].Kill())
			kit.Must(t, f.masters[masterC].Restart())
			f.wantVoting(t, masterCount)
			wantUndetermined(t, client, "GET", test.key)
			wantUndetermined(t, client, "SET", test.key, "anew")
			if test.sameTag != "" {
				wantUndetermined(t, client, "SET", test.sameTag, "a lock", "NX", "PX", "5000")
			}
			for _, master := range f.masters {
				mustSend(t, master, "DEL", test.cell)
			}
			kit.Eventually(t, func() error {
				if got := kit.Do(t, client, "SET", test.key, "anew"); got != "OK" {
					return fmt.Errorf("SET: %v", got)
				}
				return nil
			})
			kit.Want(t, client, "anew", "GET", test.key)
		})
	}
}

// wantUndetermined fails the test unless the command gets the NOQUORUM of an undetermined key.
func wantUndetermined(t *testing.T, client *redistest.Client, words ...string) {
	t.Helper()
	reply := kit.Do(t, client, words...)
	if !strings.Contains(fmt.Sprint(reply), "the state of the key is undetermined") {
		t.Errorf("%v: %v", words, reply)
	}
}
