package guard

import (
	"strconv"
	"strings"
	"time"

	"redlock-proxy/quorum/cell"
)

func isFence(key string) bool { return strings.HasPrefix(key, cell.FencePrefix) }

// fenceSteps returns the steps for the fence counters. fencesAhead holds, by index of the source, a
// key whose counter on that source is too high to be credible. A step raises a counter to the
// highest credible value of a source, unless the counter is higher already. fenceSteps ignores
// values that are not counters. now is the masters' median time.
func fenceSteps(sources []view, now time.Duration) (steps []copyStep, fencesAhead map[int]string) {
	fencesAhead = map[int]string{}
	counters := map[string][]int64{}
	for _, v := range sources {
		for key, h := range v {
			if fence := cell.ParseFence(h.Value.Text); isFence(key) && fence > 0 {
				counters[key] = append(counters[key], fence)
			}
		}
	}
	for key, values := range counters {
		highest := int64(0)
		if credible := cell.CredibleFences(values, now); len(credible) > 0 {
			highest = credible[len(credible)-1]
		}
		highestCell := storedCell{}
		for i, v := range sources {
			switch fence := cell.ParseFence(v[key].Value.Text); {
			case fence > highest:
				fencesAhead[i] = key
			case fence == highest && fence > 0:
				highestCell = storedCell{cell.Parse(strconv.FormatInt(fence, 10)), v[key].Expiry}
			}
		}
		if highest > 0 {
			steps = append(steps, copyStep{actRaise, key, highestCell})
		}
	}
	return steps, fencesAhead
}
