package commands

// lower is a word with its ASCII letters in lower case. Redis knows no others: to
// strings.ToLower the Kelvin sign, too, is a k.
func lower(word []byte) string {
	folded := make([]byte, len(word))
	for i, b := range word {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		folded[i] = b
	}
	return string(folded)
}

// cString is what C's %.*s prints: up to n bytes, and not beyond a zero byte.
func cString(s []byte, n int) []byte {
	s = s[:min(len(s), n)]
	for i, b := range s {
		if b == 0 {
			return s[:i]
		}
	}
	return s
}
