package script

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/script/calls"
	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/meter"
	luasyntax "redlock-proxy/internal/lua/syntax"
)

// Script is a compiled script, safe for concurrent use.
type Script struct {
	body, sha string
	chunk     *lua.Chunk
	readOnly  bool // it declares that it does not write
	calls     calls.Calls
	derive    sync.Once
	derived   any

	// Memo is for whoever runs it: what a run teaches for the next one.
	Memo atomic.Int64
}

// chunkName is what errors call a script.
const chunkName = "@user_script"

// MistakeError says that a script does not compile.
type MistakeError struct{ reply string }

// Error is Redis' error reply, without its '-'.
func (e *MistakeError) Error() string { return e.reply }

func mistake(text string) error {
	return &MistakeError{syntax.OneLine("ERR Error compiling script (new function): " + text)}
}

// Compile compiles a script. The error is a *MistakeError, a *LimitError, ErrLong or the cause of
// the end of ctx.
func Compile(ctx context.Context, body string, share Share) (*Script, error) {
	s := &Script{body: body, sha: SHA(body)}
	held, err := share.begin(ctx)
	if err != nil {
		return nil, limited(err, s.sha)
	}
	defer held.end()
	return s, limited(s.compile(held.limits(maxCompiled, smallCompile)), s.sha)
}

// compile makes the code, and finds what it calls.
func (s *Script) compile(limits meter.Limits) (err error) {
	readOnly, source, err := cutShebang(s.body)
	if err != nil {
		return &MistakeError{err.Error()}
	}
	m := meter.New(limits, 0)
	return meter.Protect(func() error {
		main, err := luasyntax.Parse(&m, source, chunkName)
		if err != nil {
			return mistake(err.Error())
		}
		s.readOnly, s.chunk, s.calls = readOnly, lua.Compile(&m, main), calls.Find(&m, main)
		return nil
	})
}

// SHA is what EVALSHA calls a script: the SHA-1 of its body, in hexadecimal digits of lower case.
func SHA(body string) string {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// size is about how many bytes the script holds, with what it compiled to.
func (s *Script) size() int { return len(s.body) + s.chunk.Size() }

// SHA is what EVALSHA calls the script.
func (s *Script) SHA() string { return s.sha }

// Body is the script's source as it was given to Compile.
func (s *Script) Body() string { return s.body }

// Calls are the commands that the script calls, as far as that can be seen without running it.
func (s *Script) Calls() calls.Calls { return s.calls }

// Literals are the string literals in the source, in their order.
func (s *Script) Literals() []string { return s.Calls().Literals }

// Derived is what make made of the script's calls, the first time that it was asked for.
func (s *Script) Derived(make func(calls.Calls) any) any {
	s.derive.Do(func() { s.derived = make(s.Calls()) })
	return s.derived
}

// LibraryCalls are those of the code of a library of functions. The text of an error is that of
// Compile.
func LibraryCalls(code string) (calls.Calls, error) {
	_, source, ok := strings.Cut(code, "\n") // "#!lua name=…"
	if !ok {
		return calls.Calls{}, errors.New("ERR Missing library metadata")
	}
	m := meter.New(meter.Limits{}, 0)
	main, err := luasyntax.Parse(&m, source, chunkName)
	if err != nil {
		return calls.Calls{}, errors.New(syntax.OneLine("ERR Error compiling function: " + err.Error()))
	}
	return calls.Find(&m, main), nil
}
