package keys

import "strings"

// Match reports whether a glob of Redis matches a name. * stands for any characters, ? for one
// character, and [a-z] and [^a-z] for one of a set. \ makes the next character literal. Case
// matters. Match backtracks only to the last *, so it takes at most time proportional to the
// product of both lengths. It is for the short globs of operators. Compile is for the globs of
// clients.
func Match[S ~string | ~[]byte](pattern string, name S) bool {
	p, n := 0, 0
	// afterStar is the index after the last *, and starEnd the end of the text that the * matches.
	afterStar, starEnd := -1, 0
	for n < len(name) {
		size, ok := 0, false
		if p < len(pattern) {
			if pattern[p] == '*' {
				p++
				afterStar, starEnd = p, n
				continue
			}
			size, ok = matchOne(pattern[p:], name[n])
		}
		switch {
		case ok:
			p, n = p+size, n+1
		case afterStar < 0:
			return false
		default:
			starEnd++
			p, n = afterStar, starEnd
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches a character with the first element of a pattern, which is not *. It returns the
// length of that element.
func matchOne(pattern string, c byte) (size int, ok bool) {
	switch {
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '[':
		return matchSet(pattern, c)
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, pattern[1] == c
	default:
		return 1, pattern[0] == c
	}
}

// matchSet matches a character with the set at the start of a pattern. The final ] may be missing.
func matchSet(pattern string, c byte) (size int, ok bool) {
	size = 1
	inverted := strings.HasPrefix(pattern[size:], "^")
	if inverted {
		size++
	}
	for size < len(pattern) && pattern[size] != ']' {
		rest := pattern[size:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			ok = ok || rest[1] == c
			size += 2
		case len(rest) > 2 && rest[1] == '-':
			ok = ok || min(rest[0], rest[2]) <= c && c <= max(rest[0], rest[2])
			size += 3
		default:
			ok = ok || rest[0] == c
			size++
		}
	}
	return min(size+1, len(pattern)), ok != inverted
}
