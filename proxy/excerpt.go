package proxy

import "bytes"

// excerptWords are the words at the beginning of a frame, the last one cut where
// the excerpt ends. The frame is known to be well-formed.
func excerptWords(frame []byte) [][]byte {
	var words [][]byte
	_, rest := headerNumber(frame)
	for len(rest) > 0 {
		var size int
		size, rest = headerNumber(rest)
		size = min(size, len(rest))
		words = append(words, rest[:size])
		rest = rest[min(size+2, len(rest)):]
	}
	return words
}

// headerNumber reads a line such as "$5\r\n". A line that is cut has no number.
func headerNumber(p []byte) (n int, rest []byte) {
	line, _, found := bytes.Cut(p, []byte{'\r'})
	if !found || len(line) == 0 {
		return 0, nil
	}
	for _, digit := range line[1:] {
		n = n*10 + int(digit-'0')
	}
	return n, p[min(len(line)+2, len(p)):]
}
