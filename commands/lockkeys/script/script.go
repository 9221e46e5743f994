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

// Script is a compiled script. It is safe for concurrent use.
type Script struct {
	body, sha    string
	chunk        *lua.Chunk
	readOnly     bool // its first line declares no-writes
	calls        calls.Calls
	deriveOnce   sync.Once
	derivedValue any

	// Memo keeps a number from one run to the next, for the caller.
	Memo atomic.Int64
}

// chunkName is the name of every script in errors.
const chunkName = "@user_script"

// CompileError is the error for a script that does not compile.
type CompileError struct{ reply string }

// Error implements error. It returns Redis' error reply, without its '-'.
func (e *CompileError) Error() string { return e.reply }

func compileError(text string) error {
	return &CompileError{syntax.OneLine("ERR Error compiling script (new function): " + text)}
}

// Compile compiles a script. The error is a *CompileError, a *LimitError, ErrTooLarge or the cause
// of the end of ctx.
func Compile(ctx context.Context, body string, share Share) (*Script, error) {
	s := &Script{body: body, sha: SHA(body)}
	j, err := share.begin(ctx)
	if err != nil {
		return nil, asLimitError(err, s.sha)
	}
	defer j.end()
	return s, asLimitError(s.compile(j.limits(maxCompiledBytes, smallCompile)), s.sha)
}

// compile compiles the code, and finds its calls.
func (s *Script) compile(limits meter.Limits) (err error) {
	readOnly, source, err := cutShebang(s.body)
	if err != nil {
		return &CompileError{err.Error()}
	}
	m := meter.New(limits, 0)
	return meter.Protect(func() error {
		main, err := luasyntax.Parse(&m, source, chunkName)
		if err != nil {
			return compileError(err.Error())
		}
		s.readOnly, s.chunk, s.calls = readOnly, lua.Compile(&m, main), calls.Find(&m, main)
		return nil
	})
}

// SHA returns the SHA-1 of a script's body, in lower-case hexadecimal, as for EVALSHA.
func SHA(body string) string {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// size returns the approximate size of the script in bytes, including its compiled form.
func (s *Script) size() int { return len(s.body) + s.chunk.Size() }

// SHA returns the SHA-1 of the script's body, in lower-case hexadecimal.
func (s *Script) SHA() string { return s.sha }

// Body returns the script's source, as Compile got it.
func (s *Script) Body() string { return s.body }

// Calls returns the commands that the script calls, as far as its source shows them.
func (s *Script) Calls() calls.Calls { return s.calls }

// Literals returns the string literals in the source, in their order. The literals in code that the
// script compiles at run time follow.
func (s *Script) Literals() []string { return s.Calls().Literals }

// Derive returns the result of make for the script's calls. It calls make only once.
func (s *Script) Derive(make func(calls.Calls) any) any {
	s.deriveOnce.Do(func() { s.derivedValue = make(s.Calls()) })
	return s.derivedValue
}

// LibraryCalls returns the calls in a library of functions. The text of an error is Redis' error
// reply to FUNCTION LOAD.
func LibraryCalls(code string) (calls.Calls, error) {
	_, source, ok := strings.Cut(code, "\n") // the first line is "#!lua name=…"
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
