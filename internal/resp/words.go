package resp

import "bytes"

// Words appends the complete words of a frame, or of its beginning, to words, up to a total of
// limit words. It returns all words, and the number of words in the frame. size is the number of
// bytes up to the end of the last appended word. The frame must be well-formed: a [FrameScanner]
// has accepted it.
func Words(words [][]byte, frame []byte, limit int) (allWords [][]byte, total, size int) {
	total, rest := headerNumber(frame)
	for len(words) < min(total, limit) {
		n, payload := headerNumber(rest)
		if payload == nil || len(payload) < n+2 {
			break
		}
		words = append(words, payload[:n])
		rest = payload[n+2:]
	}
	return words, total, len(frame) - len(rest)
}

// EndsInCRLF reports whether each line and each payload of a complete frame ends in "\r\n". A
// [FrameScanner], like Redis, does not check this.
func EndsInCRLF(frame []byte) bool {
	for rest := frame; len(rest) > 0; {
		n, payload := headerNumber(rest)
		line := rest[:len(rest)-len(payload)]
		rest = payload
		if line[0] == '$' {
			if !bytes.HasPrefix(payload[n:], []byte("\r\n")) {
				return false
			}
			rest = payload[n+2:]
		}
		if line[len(line)-1] != '\n' {
			return false
		}
	}
	return true
}

// Excerpt returns the words of a frame or of its beginning, and the number of words in the frame.
// The last word may be incomplete. The frame must be well-formed.
func Excerpt(frame []byte) (words [][]byte, total int) {
	total, rest := headerNumber(frame)
	for len(rest) > 0 {
		var size int
		size, rest = headerNumber(rest)
		size = min(size, len(rest))
		words = append(words, rest[:size])
		rest = rest[min(size+2, len(rest)):]
	}
	return words, total
}

// headerNumber reads a line such as "$5\r\n". It returns 0 and nil if the line is incomplete.
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

// HeaderScanner reads a line such as "$5\r\n" of a well-formed frame, in pieces of any size.
type HeaderScanner struct {
	size  int
	sawCR bool
}

// Scan consumes bytes up to the end of the line. n is the number of consumed bytes. size is the
// number in the line if the line is complete.
func (h *HeaderScanner) Scan(p []byte) (n, size int, complete bool) {
	for _, c := range p {
		n++
		switch {
		case h.sawCR:
			size = h.size
			*h = HeaderScanner{}
			return n, size, true
		case c == '\r':
			h.sawCR = true
		case c != '$':
			h.size = h.size*10 + int(c-'0')
		}
	}
	return n, 0, false
}
