package resp

import "bytes"

// Words appends to words those of a frame that are whole in its beginning, at most so many
// together. It returns how many the frame has, and how many bytes those take. What
// there is of the frame is known to be well-formed: a [FrameScanner] has let it pass.
func Words(words [][]byte, frame []byte, most int) (all [][]byte, total, size int) {
	total, rest := headerNumber(frame)
	for len(words) < min(total, most) {
		n, payload := headerNumber(rest)
		if payload == nil || len(payload) < n+2 {
			break
		}
		words = append(words, payload[:n])
		rest = payload[n+2:]
	}
	return words, total, len(frame) - len(rest)
}

// EndsInCRLF reports whether each line and each payload of a whole frame ends in "\r\n". A
// [FrameScanner], like Redis, does not look.
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

// Excerpt are the words at the beginning of a frame, the last one cut where the beginning
// ends, and how many the frame has. What there is of it is known to be well-formed.
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

// HeaderWalk goes through a line such as "$5\r\n" of a well-formed frame, in pieces.
type HeaderWalk struct {
	size int
	cr   bool
}

// Over takes bytes up to the end of the line, which tells the size.
func (h *HeaderWalk) Over(p []byte) (n, size int, whole bool) {
	for _, c := range p {
		n++
		switch {
		case h.cr:
			size = h.size
			*h = HeaderWalk{}
			return n, size, true
		case c == '\r':
			h.cr = true
		case c != '$':
			h.size = h.size*10 + int(c-'0')
		}
	}
	return n, 0, false
}
