//go:build integration

package lockkeys

import (
	"errors"
	"math/rand/v2"
	"testing"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestOverlapOfTaggedKeys repeats TestOverlapOfLockKeys with two keys that have the same tag; the
// first key is the tag itself. Meanwhile, a third key with the tag is set and removed.
func TestOverlapOfTaggedKeys(t *testing.T) {
	redistest.SkipShort(t)
	testTagOverlap(t, lockKeyFaults(), [][]string{{"PX", "300"}, {"PX", "40"}})
}

// TestOverlapWithoutTTL repeats TestOverlapOfTaggedKeys with a third key that sometimes has no TTL.
// No master restarts, because a cell on too few masters blocks the key until it expires, and a cell
// without TTL never expires.
func TestOverlapWithoutTTL(t *testing.T) {
	redistest.SkipShort(t)
	testTagOverlap(t, faults.FaultsWithoutDataLoss(), [][]string{{}, {"PX", "300"}, {"PX", "40000"}})
}

func testTagOverlap(t *testing.T, kinds []faults.Fault, options [][]string) {
	grants, seed := kit.SizeFrom(t, keyGrantsEnv, defaultKeyGrants/4), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d grants of each key wanted (%s); seed %d (%s)", grants, keyGrantsEnv, seed, kit.SeedEnv)
	f := startLockKeyFleet(t, 2, "--lock-tags", "*")
	tagContest, keyContest := startKeyContest(t, f.Addrs(), seed, contestedKey), startKeyContest(t, f.Addrs(), seed+1,
		"lock:other:{"+contestedKey+"}")
	stopNeighbour := startNeighbour(t, f.Addrs()[0], "lock:beside:{"+contestedKey+"}", options)
	disturber := faults.StartDisturber(f, seed, kinds...)
	waitErr := errors.Join(tagContest.WaitFor(t, int(grants)), keyContest.WaitFor(t, int(grants)))
	faultCounts, err := disturber.Stop()
	tagContest.Stop()
	keyContest.Stop()
	t.Logf("the masters were disturbed: %v; the neighbour changed %d times", faultCounts, stopNeighbour())
	tagContest.Report(t)
	keyContest.Report(t)
	kit.Must(t, errors.Join(waitErr, err))
	if overlaps := append(tagContest.History.Overlaps(), keyContest.History.Overlaps()...); len(overlaps) > 0 {
		t.Errorf("%d OVERLAPS, such as: %v", len(overlaps), overlaps[0])
	}
}

// startNeighbour lets a client set a key with the options in turn, and remove it, repeatedly. The
// returned function stops the client, and returns the number of changes.
func startNeighbour(t *testing.T, addr, key string, options [][]string) (stop func() int) {
	t.Helper()
	client, changes, quit, finished := kit.Dial(t, addr), 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		for {
			for i := range 2 * len(options) {
				command := []string{"DEL", key}
				if i%2 == 0 {
					command = append([]string{"SET", key, "beside"}, options[i/2]...)
				}
				select {
				case <-quit:
					return
				default:
				}
				if reply, err := client.Do(command...); err == nil && reply != int64(0) {
					changes++
				}
			}
		}
	}()
	return func() int {
		close(quit)
		<-finished
		return changes
	}
}
