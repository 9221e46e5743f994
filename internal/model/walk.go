package model

import "math/rand/v2"

// maxWalkSteps limits the number of steps of a walk. Walks can be circular: for example, a catch-up
// whose sources disagree.
const maxWalkSteps = 500

// Walk takes random paths through a scenario that is too large to explore. It ends at the first
// violation, or with the first path that ends after the given total number of steps.
func Walk(s Scenario, seed uint64, steps int) Result {
	random := rand.New(rand.NewPCG(seed, 0))
	var e *explorer
	result := Result{}
	for walk := 0; result.States < steps; walk++ {
		if walk%1000 == 0 {
			e = newExplorer(&s) // frees the stored states
		}
		current := e.root()
		var path []event
		states := []*state{current}
		for len(path) < maxWalkSteps {
			var ev event
			var next *state
			n := 0
			e.successors(current, func(candidate event, t *state) {
				if n++; random.IntN(n) == 0 {
					ev, next = candidate, t
				}
			})
			if next == nil {
				break
			}
			next.normalize()
			current, path, states = next, append(path, ev), append(states, next)
			result.States++
			if result.Violation = e.check(current); result.Violation != "" {
				for i, ev := range path {
					result.Trace = append(result.Trace, e.describe(ev, states[i+1]))
				}
				return result
			}
		}
	}
	return result
}
