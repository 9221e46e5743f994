package inspect

import (
	"fmt"
	"strconv"
)

// parseDatabases returns the number of databases from the reply to CONFIG GET databases, or 0 if
// the reply does not contain it.
func parseDatabases(reply any) int {
	words, _ := reply.([]any)
	if len(words) != 2 {
		return 0
	}
	text, _ := words[1].(string)
	n, _ := strconv.Atoi(text)
	return n
}

// CompareDatabases adds a weakness to each server that has fewer databases than another: locks in
// the missing databases fail.
func CompareDatabases(findings ...*Finding) {
	most := 0
	for _, f := range findings {
		most = max(most, f.databaseCount)
	}
	for _, f := range findings {
		if n := f.databaseCount; n > 0 && n < most {
			f.Weaknesses = append(f.Weaknesses, fmt.Sprintf(
				"has fewer databases (%d) than another server (%d): locks in the missing databases fail", n, most))
		}
	}
}
