//go:build integration

package guardschedules

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestEndlessOnQuorum: what has no time is put there while D and E are away, so that A, B and C have it. D and E are back, and C restarts without its data. A
// and B are fewer than a majority, and what C had nobody knows: what is there is what a lock would be that was granted by these three, and what would be
// left of one that was given back at C, D and E. So C gets a copy that is no vote, and the key stays open until an operator removes it on all masters. With a tag that is
// so of all keys of the tag, also of those with a time. What has a time is over with that; what all five have outlasts any two restarts.
func TestEndlessOnQuorum(t *testing.T) {
	for name, test := range map[string]struct{ endless, other, cell string }{
		"a key":         {"lock:k", "", "lock:k"},
		"a key of some": {"q:{lock:k}", "lock:k", "lock:k"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 2, nil, "--lock-keys", "lock:*", "--lock-keys", "*{lock:*", "--lock-tags", "*", "--max-ttl", "10s")
			client := f.lookers[0]
			f.cutOff(t, masterD, masterE)
			f.wantVoting(t, 3)
			kit.Want(t, client, "OK", "SET", test.endless, "for ever")
			f.reconnect(t, masterD, masterE)
			f.wantVoting(t, masterCount)
			kit.Want(t, f.lookers[1], "for ever", "GET", test.endless)
			for _, i := range []int{masterD, masterE} {
				kit.Must(t, kit.Lacks(f.masters[i], test.cell)) // nobody puts it there afterwards
			}
			kit.Must(t, f.masters[masterC].Kill())
			kit.Must(t, f.masters[masterC].Restart())
			f.wantVoting(t, masterCount)
			for _, looker := range f.lookers {
				wantOpen(t, looker, "GET", test.endless)
				wantOpen(t, looker, "SET", test.endless, "anew")
				if test.other != "" {
					wantOpen(t, looker, "SET", test.other, "a lock", "NX", "PX", "5000")
				}
			}
			for _, master := range f.masters {
				tell(t, master, "DEL", test.cell)
			}
			kit.Soon(t, func() error {
				if got := kit.Do(t, client, "SET", test.endless, "anew"); got != "OK" {
					return fmt.Errorf("SET: %v", got)
				}
				return nil
			})
			kit.Want(t, f.lookers[1], "anew", "GET", test.endless)
		})
	}
}

// wantOpen wants it to be said that it cannot be known.
func wantOpen(t *testing.T, client *redistest.Client, words ...string) {
	t.Helper()
	reply := kit.Do(t, client, words...)
	if !strings.Contains(fmt.Sprint(reply), "it stays open what the key holds") {
		t.Errorf("%v: %v", words, reply)
	}
}
