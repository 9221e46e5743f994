package syntax

import (
	"strings"

	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/meter"
)

// lexer splits a source into tokens.
type lexer struct {
	source string
	name   string
	pos    int
	line   int
	// tokenStart is the index at which the last token begins.
	tokenStart int
	tokenCount int
	literals   []string
	meter      *meter.Meter
	// nextPiece returns the next piece of a source that comes in pieces, or "" at the end of the
	// source. nextPiece is nil if source is complete.
	nextPiece func() string
	pieces    strings.Builder
}

func newLexer(m *meter.Meter, source, name string) *lexer {
	return &lexer{source: source, name: name, line: 1, meter: m}
}

// TokenSize is the maximum memory that a token takes in the tree and in the code, in bytes.
const TokenSize = 192

// eof is the character after the source. A zero byte does not end the source.
const eof = -1

func (l *lexer) peek(offset int) int {
	if !l.available(l.pos + offset) {
		return eof
	}
	return int(l.source[l.pos+offset])
}

// available reports whether the source has a character at an index. If needed, it calls nextPiece,
// but not earlier than C Lua does, because the reader function can observe the call.
func (l *lexer) available(at int) bool {
	for at >= len(l.source) && l.nextPiece != nil {
		piece := l.nextPiece()
		if piece == "" {
			l.nextPiece = nil
			break
		}
		l.pieces.WriteString(piece)
		l.source = l.pieces.String()
	}
	return at < len(l.source)
}

func isNewline(c int) bool { return c == '\n' || c == '\r' }

// newline skips one line end: LF, CR, or both.
func (l *lexer) newline() {
	first := l.peek(0)
	l.pos++
	if second := l.peek(0); isNewline(second) && second != first {
		l.pos++
	}
	l.line++
}

// scan returns the next token.
func (l *lexer) scan() token {
	for {
		switch c := l.peek(0); {
		case c == eof:
			return token{kind: tkEOF}
		case isNewline(c):
			l.newline()
		case clib.IsSpace(byte(c)):
			l.pos++
		case c == '-' && l.peek(1) == '-':
			l.skipComment()
		default:
			return l.tokenAt(byte(c))
		}
	}
}

// tokenAt reads the token that begins with c at the current index. It charges for the memory of the
// token in the tree and in the code.
func (l *lexer) tokenAt(c byte) token {
	l.meter.ChargeWork(l.pos - l.tokenStart) // the bytes since the beginning of the last token
	l.tokenStart = l.pos
	l.tokenCount++
	l.meter.Charge(TokenSize)
	t := l.readToken(c)
	if t.kind == tkString {
		l.literals = append(l.literals, t.text)
	}
	l.peek(0)
	return t
}

func (l *lexer) skipComment() {
	l.pos += 2
	if l.peek(0) == '[' {
		if level, ok := l.longBracket(); ok {
			l.longText(level, "unfinished long comment")
			return
		}
	}
	for c := l.peek(0); c != eof && !isNewline(c); c = l.peek(0) {
		l.pos++
	}
}

// readToken reads the token that begins with c.
func (l *lexer) readToken(c byte) token {
	switch {
	case c == '"' || c == '\'':
		return token{kind: tkString, text: l.quotedText(c)}
	case c == '[':
		if level, ok := l.longBracket(); ok {
			return token{kind: tkString, text: l.longText(level, "unfinished long string")}
		} else if level > 0 {
			l.fail("invalid long string delimiter", l.source[l.pos:l.pos+1+level])
		}
	case clib.IsDigit(c) || c == '.' && l.peek(1) != eof && clib.IsDigit(byte(l.peek(1))):
		return l.number()
	case clib.IsLetter(c) || c == '_':
		return l.nameOrKeyword()
	}
	return l.punctuation(c)
}

func (l *lexer) punctuation(c byte) token {
	if c == '.' {
		return l.dots()
	}
	if strings.IndexByte("=<>~", c) >= 0 && l.available(l.pos+1) {
		if k, ok := twoCharTokens[l.source[l.pos:l.pos+2]]; ok {
			l.pos += 2
			return token{kind: k}
		}
	}
	l.pos++
	return token{kind: Kind(c)}
}

var twoCharTokens = map[string]Kind{"==": Eq, ">=": Ge, "<=": Le, "~=": Ne}

func (l *lexer) dots() token {
	l.pos++
	switch {
	case !l.acceptOne("."):
		return token{kind: '.'}
	case !l.acceptOne("."):
		return token{kind: Concat}
	}
	return token{kind: tkDots}
}

// acceptOne skips a character of a set. A zero byte belongs to every set, as for C's strchr.
func (l *lexer) acceptOne(set string) bool {
	c := l.peek(0)
	if c != 0 && (c == eof || strings.IndexByte(set, byte(c)) < 0) {
		return false
	}
	l.pos++
	return true
}

func (l *lexer) nameOrKeyword() token {
	start := l.pos
	for c := l.peek(0); c != eof && (clib.IsAlnum(byte(c)) || c == '_'); c = l.peek(0) {
		l.pos++
	}
	text := l.source[start:l.pos]
	if k, ok := keywords[text]; ok {
		return token{kind: k}
	}
	return token{kind: tkName, text: text}
}

// number reads the characters that may belong to a number, and then parses them.
func (l *lexer) number() token {
	start := l.pos
	for c := l.peek(0); c != eof && (clib.IsDigit(byte(c)) || c == '.'); c = l.peek(0) {
		l.pos++
	}
	if l.acceptOne("eE") {
		l.acceptOne("+-")
	}
	for c := l.peek(0); c != eof && (clib.IsAlnum(byte(c)) || c == '_'); c = l.peek(0) {
		l.pos++
	}
	text := l.source[start:l.pos]
	n, ok := clib.ParseNumber(text)
	if !ok {
		l.fail("malformed number", clib.CutAtZero(text))
	}
	return token{kind: tkNumber, text: text, number: n}
}

// longBracket returns the number of = in the long bracket that begins at the current index. ok is
// false if there is no second bracket.
func (l *lexer) longBracket() (level int, ok bool) {
	for l.peek(1+level) == '=' {
		level++
	}
	return level, l.peek(1+level) == '['
}

// longText reads a text in long brackets, from the opening bracket on, and returns it.
func (l *lexer) longText(level int, problem string) string {
	l.pos += level + 2
	if isNewline(l.peek(0)) {
		l.newline()
	}
	closing := "]" + strings.Repeat("=", level) + "]"
	var text strings.Builder
	for {
		switch c := l.peek(0); {
		case c == eof:
			l.fail(problem, "<eof>")
		case isNewline(c):
			l.newline()
			text.WriteByte('\n')
		case c == ']' && l.available(l.pos+len(closing)-1) && strings.HasPrefix(l.source[l.pos:], closing):
			l.pos += len(closing)
			return text.String()
		default:
			text.WriteByte(byte(c))
			l.pos++
		}
	}
}

func (l *lexer) quotedText(quote byte) string {
	var text strings.Builder
	text.WriteByte(quote) // error messages show the quote
	l.pos++
	for {
		switch c := l.peek(0); {
		case c == eof:
			l.fail("unfinished string", "<eof>")
		case isNewline(c):
			l.fail("unfinished string", clib.CutAtZero(text.String()))
		case c == int(quote):
			l.pos++
			return text.String()[1:]
		case c == '\\':
			l.pos++
			l.escape(&text)
		default:
			text.WriteByte(byte(c))
			l.pos++
		}
	}
}

// escape reads an escape sequence after its backslash.
func (l *lexer) escape(text *strings.Builder) {
	c := l.peek(0)
	switch {
	case c == eof: // the string is unfinished
	case isNewline(c):
		l.newline()
		text.WriteByte('\n')
	case clib.IsDigit(byte(c)):
		code := 0
		for i := 0; i < 3 && l.peek(0) != eof && clib.IsDigit(byte(l.peek(0))); i++ {
			code = code*10 + l.peek(0) - '0'
			l.pos++
		}
		if code > 255 {
			l.fail("escape sequence too large", clib.CutAtZero(text.String()))
		}
		text.WriteByte(byte(code))
	default:
		if i := strings.IndexByte("abfnrtv", byte(c)); i >= 0 {
			c = int("\a\b\f\n\r\t\v"[i])
		}
		text.WriteByte(byte(c))
		l.pos++
	}
}
