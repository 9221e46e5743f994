//go:build integration

package lockkeys

import (
	"errors"
	"math/rand/v2"
	"testing"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/kit"
)

// TestOverlapOfTaggedKeys is TestOverlapOfLockKeys for two keys of one tag at once, one of which is the tag, while others of the tag come
// and go, with and without an end.
func TestOverlapOfTaggedKeys(t *testing.T) {
	grants, seed := kit.NumberFrom(t, keyGrantsEnv, defaultKeyGrants/2), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d grants of each key wanted (%s); seed %d (%s)", grants, keyGrantsEnv, seed, kit.SeedEnv)
	f := startLockKeyFleet(t, 2, "--lock-tags", "*")
	own, tagged := startKeyContest(t, f.Addrs(), seed, contestedKey), startKeyContest(t, f.Addrs(), seed+1, "lock:other:{"+contestedKey+"}")
	neighbour := startNeighbour(t, f.Addrs()[0], "lock:beside:{"+contestedKey+"}")
	disturber := faults.StartDisturber(f, seed, lockKeyDisturbances()...)
	starved := errors.Join(own.WaitFor(t, int(grants)), tagged.WaitFor(t, int(grants)))
	done, err := disturber.Stop()
	own.Stop()
	tagged.Stop()
	t.Logf("the masters were disturbed: %v; the neighbour changed %d times", done, neighbour())
	own.Report(t)
	tagged.Report(t)
	kit.Must(t, errors.Join(starved, err))
	for name, history := range map[string]interface {
		Count() int
	}{"own": own.History, "tagged": tagged.History} {
		if history.Count() < int(grants) {
			t.Errorf("%s: %d grants", name, history.Count())
		}
	}
	if found := append(own.History.Overlaps(), tagged.History.Overlaps()...); len(found) > 0 {
		t.Errorf("%d OVERLAPS, such as: %v", len(found), found[0])
	}
}

// startNeighbour has a client change a key again and again, which then has an end or none, or is gone. What it returns ends that, and
// tells how often it was done.
func startNeighbour(t *testing.T, addr, key string) (stop func() int) {
	t.Helper()
	client, changed, quit, over := kit.Dial(t, addr), 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			for _, command := range [][]string{{"SET", key, "for ever"}, {"SET", key, "a while", "PX", "40000"}, {"PEXPIRE", key, "50"}, {"DEL", key}} {
				select {
				case <-quit:
					return
				default:
				}
				if reply, err := client.Do(command...); err == nil && reply != int64(0) {
					changed++
				}
			}
		}
	}()
	return func() int {
		close(quit)
		<-over
		return changed
	}
}
