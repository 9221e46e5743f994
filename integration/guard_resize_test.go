//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// startOn starts a proxy on these masters, when all of them vote.
func startOn(t *testing.T, masters []*harness.Redis) *harness.Proxy {
	t.Helper()
	f := &fleet{masters: masters, proxies: []*harness.Proxy{startProxy(t, harness.URLs(masters))}}
	f.wantVoting(t, len(masters))
	return f.proxies[0]
}

// TestTwoNumbersOfMasters: while proxies of five masters and of three of these work at once, one lock is granted twice: a majority of the
// five and one of the three need not meet. So README says how to get from one number to another; see the next test.
func TestTwoNumbersOfMasters(t *testing.T) {
	masters := startMasters(t)
	f := &fleet{masters: masters}
	of5 := startOn(t, masters)
	client := connect(t, of5)
	wantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	everywhere(t, masters, func(master *harness.Redis) error { return stands(master, "0", "k", "t") })
	for _, i := range []int{1, 2} { // as if they had never answered
		must(t, tell(f.masters[i], "DEL", "k"))
	}
	wantGrant(t, connect(t, startOn(t, masters[:3])), "LOCK", "k", "u", "PX", "60000")
	want(t, client, int64(1), "UNLOCK", "k", "t") // the other had it all the time
}

// TestAnotherNumberOfMasters goes from five masters to three and back as README says: all proxies stop, the longest time in use passes,
// those of the new set start. The lock is granted again, and not before its time is over.
func TestAnotherNumberOfMasters(t *testing.T) {
	const ttl = 2 * time.Second
	masters := startMasters(t)
	for _, numbers := range [][2]int{{5, 3}, {3, 5}} {
		t.Run(fmt.Sprintf("from %d to %d", numbers[0], numbers[1]), func(t *testing.T) {
			before := startOn(t, masters[:numbers[0]])
			asked := time.Now()
			validity := wantGrant(t, connect(t, before), "LOCK", "k", "t", "PX", millis(ttl))
			must(t, before.Close())
			time.Sleep(ttl)
			client := connect(t, startOn(t, masters[:numbers[1]]))
			soon(t, func() error {
				reply := do(t, client, "LOCK", "k", "u", "PX", millis(ttl))
				if _, granted := reply.(int64); !granted {
					return fmt.Errorf("LOCK: %v", reply)
				}
				return nil
			})
			if since := time.Since(asked); since < validity {
				t.Errorf("DOUBLE GRANT after %v, the first is valid for %v", since, validity)
			}
			want(t, client, int64(1), "UNLOCK", "k", "u")
		})
	}
}
