package conf

import "strings"

// advice returns a hint for an unknown name: the valid name that the user probably meant, or else
// all valid names.
func advice(name string, validNames []string) string {
	if best := NearestName(name, validNames); best != "" {
		return "did you mean " + best + "?"
	}
	return "known settings: " + strings.Join(validNames, ", ")
}

// NearestName returns the valid name that the user probably meant, or an empty text. It ignores
// case.
func NearestName(name string, validNames []string) string {
	best, least := "", 3 // a name with more than two wrong letters is a different word
	for _, k := range validNames {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance returns the Levenshtein distance: the number of letters to add, remove or replace to
// turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaceCost := diagonal
			if a[i] != b[j] {
				replaceCost++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaceCost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
