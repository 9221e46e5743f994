package inspect

import (
	"fmt"
	"strconv"
)

// parseDatabases returns the number of databases from the answer to CONFIG GET databases, or 0 if
// the answer does not contain it.
func parseDatabases(answer any) int {
	words, _ := answer.([]any)
	if len(words) != 2 {
		return 0
	}
	text, _ := words[1].(string)
	n, _ := strconv.Atoi(text)
	return n
}

// CompareDatabases notes at each server that another server has more databases. Locks in the
// missing databases fail.
func CompareDatabases(findings ...*Finding) {
	most := 0
	for _, f := range findings {
		most = max(most, f.databaseCount)
	}
	for _, f := range findings {
		if n := f.databaseCount; n > 0 && n < most {
			f.Weak = append(f.Weak, fmt.Sprintf(
				"has fewer databases (%d) than another server (%d): locks in the missing databases fail", n, most))
		}
	}
}
