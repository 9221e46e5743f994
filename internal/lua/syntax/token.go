package syntax

import (
	"fmt"
	"strconv"

	"redlock-proxy/internal/lua/meter"
)

// token is a word of the source. Signs of one character are their own code, as in C Lua.
type token struct {
	kind   Kind
	text   string  // of a name or string; of a number as it was written
	number float64 // of a number
}

// Kind is what a token is, and so an operator of the tree: its sign, or one of these if it has more
// than one character.
type Kind int

// The tokens, in C Lua's order. Those of operators are exported.
const (
	And Kind = iota + 257
	tkBreak
	tkDo
	tkElse
	tkElseif
	tkEnd
	tkFalse
	tkFor
	tkFunction
	tkIf
	tkIn
	tkLocal
	tkNil
	Not
	Or
	tkRepeat
	tkReturn
	tkThen
	tkTrue
	tkUntil
	tkWhile
	Concat
	tkDots
	Eq
	Ge
	Le
	Ne
	tkNumber
	tkName
	tkString
	tkEOF
)

// spellings are the tokens' names in messages, from And on.
var spellings = [...]string{"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
	"or", "repeat", "return", "then", "true", "until", "while", "..", "...", "==", ">=", "<=", "~=", "<number>", "<name>", "<string>", "<eof>"}

var keywords = func() map[string]Kind {
	words := map[string]Kind{}
	for k := And; k <= tkWhile; k++ {
		words[spellings[k-And]] = k
	}
	return words
}()

// String is the token as C Lua's errors write it.
func (k Kind) String() string {
	switch {
	case k >= And:
		return spellings[k-And]
	case k < 32 || k == 127:
		return "char(" + strconv.Itoa(int(k)) + ")"
	}
	return string([]byte{byte(k)})
}

// Literals returns the string literals of a source in their order, repetitions included. The error
// is a *CompileError.
func Literals(m *meter.Meter, source, name string) (literals []string, err error) {
	defer catchMistake(&err)
	l := newLexer(m, source, name)
	for l.scan().kind != tkEOF {
	}
	return l.literals, nil
}

// catchMistake turns the panic of a lexer or parser into its error.
func catchMistake(err *error) {
	switch problem := recover().(type) {
	case nil:
	case *CompileError:
		*err = problem
	default:
		panic(problem)
	}
}

// mistake ends the compilation. near is what the message shows as the place, if anything.
func (l *lexer) mistake(text, near string) {
	text = fmt.Sprintf("%s:%d: %s", ChunkName(l.name), l.line, text)
	if near != "" {
		text += " near '" + near + "'"
	}
	panic(&CompileError{Text: text})
}
