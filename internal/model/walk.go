package model

import "math/rand/v2"

// longestWalk ends walks that go in circles, as a catch-up may whose sources do not agree.
const longestWalk = 500

// Walk takes random ways through a scenario that is too large to be explored, so many
// steps in all, and stops where something is wrong.
func Walk(s Scenario, seed uint64, steps int) Result {
	random := rand.New(rand.NewPCG(seed, 0))
	var e *explorer
	result := Result{}
	for walk := 0; result.States < steps; walk++ {
		if walk%1000 == 0 {
			e = newExplorer(&s) // what is remembered grows
		}
		now := e.root()
		var way []event
		states := []*state{now}
		for len(way) < longestWalk {
			var ev event
			var next *state
			n := 0
			e.successors(now, func(one event, t *state) {
				if n++; random.IntN(n) == 0 {
					ev, next = one, t
				}
			})
			if next == nil {
				break
			}
			next.tidy()
			now, way, states = next, append(way, ev), append(states, next)
			result.States++
			if result.Violation = e.wrong(now); result.Violation != "" {
				for i, ev := range way {
					result.Trace = append(result.Trace, e.tell(ev, states[i+1]))
				}
				return result
			}
		}
	}
	return result
}
