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
	for _, f := range findings {
		if shortage := f.DatabaseShortage(findings...); shortage != "" {
			f.Weaknesses = append(f.Weaknesses, shortage+": locks in the missing databases fail")
		}
	}
}

// DatabaseShortage returns a text if the server has fewer databases than another of these servers,
// or else an empty text.
func (f Finding) DatabaseShortage(servers ...*Finding) string {
	most := 0
	for _, other := range servers {
		most = max(most, other.databaseCount)
	}
	if n := f.databaseCount; n > 0 && n < most {
		return fmt.Sprintf("has fewer databases (%d) than another server (%d)", n, most)
	}
	return ""
}
