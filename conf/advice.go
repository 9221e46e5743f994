package conf

import "strings"

// advice returns a hint for an unknown name: the known name that the user probably meant, or else
// all known names.
func advice(name string, known []string) string {
	if best := Nearest(name, known); best != "" {
		return "did you mean " + best + "?"
	}
	return "known settings: " + strings.Join(known, ", ")
}

// Nearest returns the known name that the user probably meant, ignoring case, or an empty text.
func Nearest(name string, known []string) string {
	best, least := "", 3 // a name with more than two wrong letters is a different word
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance returns the Levenshtein distance: how many letters must be added, removed or replaced to
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
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
