package syntax

import (
	"fmt"
	"strconv"

	"redlock-proxy/internal/lua/meter"
)

// token is a token of the source. The kind of a one-character token is its character, as in C Lua.
type token struct {
	kind   Kind
	text   string  // the name, the string, or the source text of a number
	number float64 // the value of a number
}

// Kind is the kind of a token, or an operator of the tree. The kind of a one-character token is its
// character. Each longer token has one of the constants as its kind.
type Kind int

// The kinds of tokens, in C Lua's order. Operators are exported.
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

// spellings holds the tokens' names in messages, beginning with And.
var spellings = [...]string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
	"not", "or", "repeat", "return", "then", "true", "until", "while", "..", "...", "==", ">=", "<=", "~=",
	"<number>", "<name>", "<string>", "<eof>",
}

var keywords = func() map[string]Kind {
	words := map[string]Kind{}
	for k := And; k <= tkWhile; k++ {
		words[spellings[k-And]] = k
	}
	return words
}()

// String returns the token as C Lua's messages show it.
func (k Kind) String() string {
	switch {
	case k >= And:
		return spellings[k-And]
	case k < 32 || k == 127:
		return "char(" + strconv.Itoa(int(k)) + ")"
	}
	return string([]byte{byte(k)})
}

// Literals returns the string literals of a source in their order, including repetitions. The error
// is a *CompileError.
func Literals(m *meter.Meter, source, name string) (literals []string, err error) {
	defer recoverError(&err)
	l := newLexer(m, source, name)
	for l.scan().kind != tkEOF {
	}
	return l.literals, nil
}

// recoverError recovers from the panic of a lexer or parser, and sets *err to its CompileError.
func recoverError(err *error) {
	switch problem := recover().(type) {
	case nil:
	case *CompileError:
		*err = problem
	default:
		panic(problem)
	}
}

// fail ends the compilation with an error. If context is not empty, the message says that the error
// is near this text.
func (l *lexer) fail(text, context string) {
	text = fmt.Sprintf("%s:%d: %s", ChunkName(l.name), l.line, text)
	if context != "" {
		text += " near '" + context + "'"
	}
	panic(&CompileError{Text: text})
}
