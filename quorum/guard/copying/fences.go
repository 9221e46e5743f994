package copying

import (
	"strconv"
	"strings"

	"redlock-proxy/quorum/cell"
)

func isFence(key string) bool { return strings.HasPrefix(key, cell.FencePrefix) }

// Fences are the steps for the fence counters: each is raised to the highest that a source holds,
// unless it is higher. What is no counter is left out.
func Fences(sources []View) []Step {
	highest := map[string]Held{}
	for _, v := range sources {
		for key, h := range v {
			fence := cell.ParseFence(h.Value.Text)
			if isFence(key) && fence > cell.ParseFence(highest[key].Value.Text) {
				h.Cell = cell.Parse(strconv.FormatInt(fence, 10))
				highest[key] = h
			}
		}
	}
	var steps []Step
	for key, h := range highest {
		steps = append(steps, Step{actRaise, key, h})
	}
	return steps
}
