package lua

import (
	"fmt"
	"strconv"
)

// token is a word of the source. Signs of one character are their own code, as in C Lua.
type token struct {
	kind   kind
	text   string  // of a name or string; of a number as it was written
	number float64 // of a number
}

type kind int

const (
	tkAnd kind = iota + 257
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
	tkNot
	tkOr
	tkRepeat
	tkReturn
	tkThen
	tkTrue
	tkUntil
	tkWhile
	tkConcat
	tkDots
	tkEq
	tkGe
	tkLe
	tkNe
	tkNumber
	tkName
	tkString
	tkEOF
)

// spellings are the tokens' names in messages, from tkAnd on.
var spellings = [...]string{"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
	"or", "repeat", "return", "then", "true", "until", "while", "..", "...", "==", ">=", "<=", "~=", "<number>", "<name>", "<string>", "<eof>"}

var keywords = func() map[string]kind {
	words := map[string]kind{}
	for k := tkAnd; k <= tkWhile; k++ {
		words[spellings[k-tkAnd]] = k
	}
	return words
}()

// String is the token as C Lua's errors write it.
func (k kind) String() string {
	switch {
	case k >= tkAnd:
		return spellings[k-tkAnd]
	case k < 32 || k == 127:
		return "char(" + strconv.Itoa(int(k)) + ")"
	}
	return string([]byte{byte(k)})
}

// Literals are the string literals of a source in their order, repetitions included. The error is a *CompileError.
func Literals(source, name string) (literals []string, err error) {
	defer catchMistake(&err)
	l := newLexer(source, name)
	for {
		switch t := l.scan(); t.kind {
		case tkString:
			literals = append(literals, t.text)
		case tkEOF:
			return literals, nil
		}
	}
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
	text = fmt.Sprintf("%s:%d: %s", chunkName(l.name), l.line, text)
	if near != "" {
		text += " near '" + near + "'"
	}
	panic(&CompileError{text})
}
