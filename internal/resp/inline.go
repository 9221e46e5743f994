package resp

import "bytes"

// inlineCommand holds the state of an inline command, from its first byte to the end of its frame.
type inlineCommand struct {
	line    []byte   // the beginning of an incomplete line
	args    [][]byte // the arguments in the complete line
	length  int      // the bytes of the line so far
	sawZero bool     // the line contains a zero byte; Redis finds no line end after it
}

// IsInline reports whether the frame that began last is an inline command, not an array.
func (s *FrameScanner) IsInline() bool { return s.isInline }

// InlineArgs returns the arguments of an inline command, from FrameName until the scan after
// FrameEnd. The caller may keep them.
func (s *FrameScanner) InlineArgs() [][]byte {
	if s.inline == nil {
		return nil
	}
	return s.inline.args
}

// scanInline consumes a part of an inline command's line. Quotes decide where the command's name
// ends, so the name is unknown before the line's end.
func (s *FrameScanner) scanInline(p []byte) (n int, ev FrameEvent, err error) {
	room := max(s.limits.MaxInline-s.inline.length, -1)
	if len(p) > room {
		p = p[:room+1] // one byte more than the limit is enough to refuse the line
	}
	end := s.inline.findEnd(p)
	if end < 0 {
		s.inline.keep(p)
		if s.inline.length > s.limits.MaxInline {
			err = errLongInline
		}
		return len(p), FrameMore, err
	}
	ev, err = s.endLine(s.inline.joinLine(p[:end]))
	return end + 1, ev, err
}

// endLine splits a complete line, without its '\n', into the arguments. splitInline treats a '\r'
// at the line's end as white space.
func (s *FrameScanner) endLine(line []byte) (FrameEvent, error) {
	args, ok := splitInline(line)
	if !ok {
		return FrameMore, errUnbalancedQuotes
	}
	if len(args) == 0 {
		s.state = betweenFrames
		return FrameEmpty, nil
	}
	s.state, *s.inline = inEnd, inlineCommand{args: args}
	s.isNameLong = s.keepName(args[0]) < len(args[0])
	return FrameName, nil
}

// findEnd returns the index of the '\n' in p that ends the line, or -1.
func (c *inlineCommand) findEnd(p []byte) int {
	end := bytes.IndexByte(p, '\n')
	if end >= 0 {
		p = p[:end]
	}
	if c.sawZero = c.sawZero || bytes.IndexByte(p, 0) >= 0; c.sawZero {
		return -1
	}
	return end
}

// keep stores a part of an incomplete line. After a zero byte the line has no end and can only
// reach the limit, so keep stores nothing.
func (c *inlineCommand) keep(part []byte) {
	c.length += len(part)
	if c.sawZero {
		c.line = nil
		return
	}
	c.line = append(c.line, part...)
}

// joinLine returns the complete line; last is its last part.
func (c *inlineCommand) joinLine(last []byte) []byte {
	if len(c.line) == 0 {
		return last
	}
	return append(c.line, last...)
}

// splitInline splits an inline command's line into its arguments as Redis does. ok is false if a
// closing quote is missing, or is followed by something other than white space. The arguments do
// not share memory with the line.
//
// A quoted part may begin within a word, but its closing quote always ends the word. In double
// quotes, \n \r \t \b \a and \xHH are escapes, and \ before any other byte means that byte. In
// single quotes, only \' is an escape.
func splitInline(line []byte) (args [][]byte, ok bool) {
	line, _, _ = bytes.Cut(line, []byte{0})
	words := make([]byte, 0, len(line)) // decoding makes no word longer
	for {
		for len(line) > 0 && isInlineSpace(line[0]) {
			line = line[1:]
		}
		if len(line) == 0 {
			return args, true
		}
		start := len(words)
		if words, line, ok = decodeWord(words, line); !ok {
			return nil, false
		}
		args = append(args, words[start:len(words):len(words)])
	}
}

// isInlineSpace reports whether c is white space in C.
func isInlineSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// decodeWord appends the word at the beginning of line to dst, and returns the rest of the line.
// Vertical tab and form feed are white space before a word, but do not end an unquoted word.
func decodeWord(dst, line []byte) (word, rest []byte, ok bool) {
	for i, c := range line {
		switch c {
		case ' ', '\t', '\n', '\r':
			return dst, line[i:], true
		case '"':
			return decodeDoubleQuoted(dst, line[i+1:])
		case '\'':
			return decodeSingleQuoted(dst, line[i+1:])
		}
		dst = append(dst, c)
	}
	return dst, nil, true
}

// decodeDoubleQuoted decodes the rest of a word after a double quote, as decodeWord does.
func decodeDoubleQuoted(dst, line []byte) (word, rest []byte, ok bool) {
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"':
			return dst, line[i+1:], endsWord(line[i+1:])
		case c == '\\' && i+1 < len(line):
			var n int
			c, n = decodeEscape(line[i+1:])
			i += n
		}
		dst = append(dst, c)
	}
	return nil, nil, false
}

// decodeSingleQuoted decodes the rest of a word after a single quote, as decodeWord does.
func decodeSingleQuoted(dst, line []byte) (word, rest []byte, ok bool) {
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'':
			return dst, line[i+1:], endsWord(line[i+1:])
		case c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			c = '\''
			i++
		}
		dst = append(dst, c)
	}
	return nil, nil, false
}

// endsWord reports whether a closing quote may come before rest.
func endsWord(rest []byte) bool { return len(rest) == 0 || isInlineSpace(rest[0]) }

// decodeEscape decodes the escape at the beginning of s, without its \. It returns the byte that
// the escape means, and the length of the escape.
func decodeEscape(s []byte) (c byte, n int) {
	switch s[0] {
	case 'x':
		if len(s) >= 3 && hexDigit(s[1]) >= 0 && hexDigit(s[2]) >= 0 {
			return byte(hexDigit(s[1])<<4 | hexDigit(s[2])), 3
		}
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	}
	return s[0], 1
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
