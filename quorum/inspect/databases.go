package inspect

import (
	"fmt"
	"strconv"
)

// databasesIn is how many databases a server has, by its answer to CONFIG GET databases; 0: it does
// not say.
func databasesIn(answer any) int {
	words, _ := answer.([]any)
	if len(words) != 2 {
		return 0
	}
	text, _ := words[1].(string)
	n, _ := strconv.Atoi(text)
	return n
}

// CompareDatabases notes at each server that another one of them has more databases: locks in those
// fail there.
func CompareDatabases(findings ...*Finding) {
	most := 0
	for _, f := range findings {
		most = max(most, f.hasDatabases)
	}
	for _, f := range findings {
		if n := f.hasDatabases; n > 0 && n < most {
			f.Weak = append(f.Weak, fmt.Sprintf("has %d databases, where another server has %d: locks in those that it lacks fail", n, most))
		}
	}
}
