package guard

import (
	"slices"
	"sync"
	"sync/atomic"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/vote"
)

// believed returns how many of n masters have to say a thing for it to count: one alone may be
// wrong.
func believed(n int) int { return min(2, vote.Majority(n)) }

// counted returns the proxies that count by the lists of the masters that are up: those that so
// many of them list as are believed.
func counted(lists [][]Proxy) (proxies []Proxy) {
	listed := map[string]int{}
	for _, p := range slices.Concat(lists...) {
		if listed[p.ID]++; listed[p.ID] == believed(len(lists)) {
			proxies = append(proxies, p)
		}
	}
	return proxies
}

// countAtOnce asks of all at once whether something is so, and returns of how many it is. One that
// panics is none of these.
func countAtOnce[T any](all []T, is func(T) bool) int {
	var n atomic.Int64
	var wg sync.WaitGroup
	for _, one := range all {
		wg.Go(func() {
			_ = contained.Run(func() error {
				if is(one) {
					n.Add(1)
				}
				return nil
			})
		})
	}
	wg.Wait()
	return int(n.Load())
}
