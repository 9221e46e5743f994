package syntax

import (
	"strings"

	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/meter"
)

// lexer cuts a source into tokens.
type lexer struct {
	source string
	name   string
	at     int
	line   int
	// tokenStart is where the last token began.
	tokenStart int
	tokens     int
	literals   []string
	meter      *meter.Meter // nil: nothing is charged
	// more gives the next piece of a source that comes in pieces, empty at its end; nil if all of
	// it is there.
	more   func() string
	pieces strings.Builder
}

func newLexer(m *meter.Meter, source, name string) *lexer {
	return &lexer{source: source, name: name, line: 1, meter: m}
}

// TokenSize is what a token of a source compiles to, at most, in bytes: its part of the tree and of
// the code.
const TokenSize = 192

// end is the character behind the source. A zero byte in it is none.
const end = -1

func (l *lexer) peek(ahead int) int {
	if !l.reach(l.at + ahead) {
		return end
	}
	return int(l.source[l.at+ahead])
}

// reach reports whether the source has a place, and asks for further pieces if it may: no sooner
// than C Lua, as its reader can see.
func (l *lexer) reach(at int) bool {
	for at >= len(l.source) && l.more != nil {
		piece := l.more()
		if piece == "" {
			l.more = nil
			break
		}
		l.pieces.WriteString(piece)
		l.source = l.pieces.String()
	}
	return at < len(l.source)
}

func isNewline(c int) bool { return c == '\n' || c == '\r' }

// newline skips one end of a line, of any system.
func (l *lexer) newline() {
	first := l.peek(0)
	l.at++
	if second := l.peek(0); isNewline(second) && second != first {
		l.at++
	}
	l.line++
}

// scan is the next token.
func (l *lexer) scan() token {
	for {
		switch c := l.peek(0); {
		case c == end:
			return token{kind: tkEOF}
		case isNewline(c):
			l.newline()
		case clib.IsBlank(byte(c)):
			l.at++
		case c == '-' && l.peek(1) == '-':
			l.skipComment()
		default:
			return l.tokenAt(byte(c))
		}
	}
}

// tokenAt is the token that begins at this place, charged for all that is made of it.
func (l *lexer) tokenAt(c byte) token {
	l.meter.Work(l.at - l.tokenStart) // what was read since the last one began
	l.tokenStart = l.at
	l.tokens++
	l.meter.Charge(TokenSize)
	t := l.word(c)
	if t.kind == tkString {
		l.literals = append(l.literals, t.text)
	}
	l.peek(0)
	return t
}

func (l *lexer) skipComment() {
	l.at += 2
	if l.peek(0) == '[' {
		if level, ok := l.longBracket(); ok {
			l.longText(level, "unfinished long comment")
			return
		}
	}
	for c := l.peek(0); c != end && !isNewline(c); c = l.peek(0) {
		l.at++
	}
}

// word is the token that begins with c.
func (l *lexer) word(c byte) token {
	switch {
	case c == '"' || c == '\'':
		return token{kind: tkString, text: l.quoted(c)}
	case c == '[':
		if level, ok := l.longBracket(); ok {
			return token{kind: tkString, text: l.longText(level, "unfinished long string")}
		} else if level > 0 {
			l.mistake("invalid long string delimiter", l.source[l.at:l.at+1+level])
		}
	case clib.IsDigit(c) || c == '.' && l.peek(1) != end && clib.IsDigit(byte(l.peek(1))):
		return l.number()
	case clib.IsLetter(c) || c == '_':
		return l.nameOrKeyword()
	}
	return l.sign(c)
}

// sign is a token of punctuation.
func (l *lexer) sign(c byte) token {
	if c == '.' {
		return l.dots()
	}
	if strings.IndexByte("=<>~", c) >= 0 && l.reach(l.at+1) {
		if k, ok := twoSigns[l.source[l.at:l.at+2]]; ok {
			l.at += 2
			return token{kind: k}
		}
	}
	l.at++
	return token{kind: Kind(c)}
}

var twoSigns = map[string]Kind{"==": Eq, ">=": Ge, "<=": Le, "~=": Ne}

func (l *lexer) dots() token {
	l.at++
	switch {
	case !l.acceptOne("."):
		return token{kind: '.'}
	case !l.acceptOne("."):
		return token{kind: Concat}
	}
	return token{kind: tkDots}
}

// acceptOne skips a character of a set. To C's strchr the zero byte at its end belongs to every
// set.
func (l *lexer) acceptOne(set string) bool {
	c := l.peek(0)
	if c != 0 && (c == end || strings.IndexByte(set, byte(c)) < 0) {
		return false
	}
	l.at++
	return true
}

func (l *lexer) nameOrKeyword() token {
	start := l.at
	for c := l.peek(0); c != end && (clib.IsAlnum(byte(c)) || c == '_'); c = l.peek(0) {
		l.at++
	}
	text := l.source[start:l.at]
	if k, ok := keywords[text]; ok {
		return token{kind: k}
	}
	return token{kind: tkName, text: text}
}

// number reads what looks like a number, and then asks whether it is one.
func (l *lexer) number() token {
	start := l.at
	for c := l.peek(0); c != end && (clib.IsDigit(byte(c)) || c == '.'); c = l.peek(0) {
		l.at++
	}
	if l.acceptOne("eE") {
		l.acceptOne("+-")
	}
	for c := l.peek(0); c != end && (clib.IsAlnum(byte(c)) || c == '_'); c = l.peek(0) {
		l.at++
	}
	text := l.source[start:l.at]
	n, ok := clib.ParseNumber(text)
	if !ok {
		l.mistake("malformed number", clib.UpToZero(text))
	}
	return token{kind: tkNumber, text: text, number: n}
}

// longBracket is the number of = in the long bracket at this place; if there is none, how many
// there were is still told.
func (l *lexer) longBracket() (level int, ok bool) {
	for l.peek(1+level) == '=' {
		level++
	}
	return level, l.peek(1+level) == '['
}

// longText reads from a long bracket to its end.
func (l *lexer) longText(level int, unfinished string) string {
	l.at += level + 2
	if isNewline(l.peek(0)) {
		l.newline()
	}
	closing := "]" + strings.Repeat("=", level) + "]"
	var text strings.Builder
	for {
		switch c := l.peek(0); {
		case c == end:
			l.mistake(unfinished, "<eof>")
		case isNewline(c):
			l.newline()
			text.WriteByte('\n')
		case c == ']' && l.reach(l.at+len(closing)-1) && strings.HasPrefix(l.source[l.at:], closing):
			l.at += len(closing)
			return text.String()
		default:
			text.WriteByte(byte(c))
			l.at++
		}
	}
}

func (l *lexer) quoted(quote byte) string {
	var text strings.Builder
	text.WriteByte(quote) // a message shows it
	l.at++
	for {
		switch c := l.peek(0); {
		case c == end:
			l.mistake("unfinished string", "<eof>")
		case isNewline(c):
			l.mistake("unfinished string", clib.UpToZero(text.String()))
		case c == int(quote):
			l.at++
			return text.String()[1:]
		case c == '\\':
			l.at++
			l.escape(&text)
		default:
			text.WriteByte(byte(c))
			l.at++
		}
	}
}

// escape reads what follows a backslash in a string.
func (l *lexer) escape(text *strings.Builder) {
	c := l.peek(0)
	switch {
	case c == end: // the string is unfinished
	case isNewline(c):
		l.newline()
		text.WriteByte('\n')
	case clib.IsDigit(byte(c)):
		code := 0
		for i := 0; i < 3 && l.peek(0) != end && clib.IsDigit(byte(l.peek(0))); i++ {
			code = code*10 + l.peek(0) - '0'
			l.at++
		}
		if code > 255 {
			l.mistake("escape sequence too large", clib.UpToZero(text.String()))
		}
		text.WriteByte(byte(code))
	default:
		if i := strings.IndexByte("abfnrtv", byte(c)); i >= 0 {
			c = int("\a\b\f\n\r\t\v"[i])
		}
		text.WriteByte(byte(c))
		l.at++
	}
}
