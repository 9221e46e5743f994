package script

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strings"
	"sync"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/script/lua"
	"redlock-proxy/commands/script/lua/calls"
)

// Script is a compiled script, safe for concurrent use.
type Script struct {
	body, sha string
	chunk     *lua.Chunk
	readOnly  bool // it declares that it does not write
	calls     func() calls.Calls
	derive    sync.Once
	derived   any
}

// chunkName is what errors call a script.
const chunkName = "@user_script"

// Compile compiles a script. The text of an error is Redis' error reply, without its '-'.
func Compile(body string) (*Script, error) {
	readOnly, source, err := cutShebang(body)
	if err != nil {
		return nil, err
	}
	chunk, err := lua.Compile(source, chunkName)
	if err != nil {
		return nil, errors.New(syntax.OneLine("ERR Error compiling script (new function): " + err.Error()))
	}
	known := sync.OnceValue(func() calls.Calls { return findCalls(source) })
	return &Script{body: body, sha: SHA(body), chunk: chunk, readOnly: readOnly, calls: known}, nil
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
func (s *Script) Calls() calls.Calls { return s.calls() }

// Literals are the string literals in the source, in their order.
func (s *Script) Literals() []string { return s.Calls().Literals }

// Derived is what make made of the script's calls, the first time that it was asked for.
func (s *Script) Derived(make func(calls.Calls) any) any {
	s.derive.Do(func() { s.derived = make(s.Calls()) })
	return s.derived
}

// LibraryCalls are those of the code of a library of functions. The text of an error is that of Compile.
func LibraryCalls(code string) (calls.Calls, error) {
	_, source, ok := strings.Cut(code, "\n") // "#!lua name=…"
	if !ok {
		return calls.Calls{}, errors.New("ERR Missing library metadata")
	}
	found, err := calls.Find(source, chunkName)
	if err != nil {
		return calls.Calls{}, errors.New(syntax.OneLine("ERR Error compiling function: " + err.Error()))
	}
	return found, nil
}

// findCalls is calls.Find of a source that was compiled.
func findCalls(source string) calls.Calls {
	found, err := calls.Find(source, chunkName)
	if err != nil {
		return calls.Calls{Hidden: true}
	}
	return found
}
