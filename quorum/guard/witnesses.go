package guard

import (
	"slices"
	"sync"
	"sync/atomic"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/vote"
)

// witnessQuorum returns how many of n masters must report a fact before a proxy trusts it, because
// a single master may be wrong.
func witnessQuorum(n int) int { return min(2, vote.Majority(n)) }

// confirmedProxies returns the proxies that are on at least witnessQuorum of the lists. Each list
// is from a master that is up.
func confirmedProxies(lists [][]Proxy) (proxies []Proxy) {
	listed := map[string]int{}
	for _, p := range slices.Concat(lists...) {
		if listed[p.ID]++; listed[p.ID] == witnessQuorum(len(lists)) {
			proxies = append(proxies, p)
		}
	}
	return proxies
}

// countParallel calls do for all elements at the same time, and returns the number of calls that
// returned true. A call that panics counts as false.
func countParallel[T any](elems []T, do func(T) bool) int {
	var n atomic.Int64
	var wg sync.WaitGroup
	for _, elem := range elems {
		wg.Go(func() {
			_ = contained.Run(func() error {
				if do(elem) {
					n.Add(1)
				}
				return nil
			})
		})
	}
	wg.Wait()
	return int(n.Load())
}
