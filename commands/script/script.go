package script

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"

	"redlock-proxy/commands/script/lua"
)

// Script is a compiled script, safe for concurrent use.
type Script struct {
	body, sha string
	chunk     *lua.Chunk
	flags     Flags
}

// chunkName is what errors call a script.
const chunkName = "@user_script"

// Compile compiles a script. The text of an error is Redis' error reply, without its '-'.
func Compile(body string) (*Script, error) {
	flags, source, err := cutShebang(body)
	if err != nil {
		return nil, err
	}
	chunk, err := lua.Compile(source, chunkName)
	if err != nil {
		return nil, errors.New(oneLine("ERR Error compiling script (new function): " + err.Error()))
	}
	return &Script{body: body, sha: SHA(body), chunk: chunk, flags: flags}, nil
}

// SHA is what EVALSHA calls a script: the SHA-1 of its body, in hexadecimal digits of lower case.
func SHA(body string) string {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// SHA is what EVALSHA calls the script.
func (s *Script) SHA() string { return s.sha }

// Body is the script's source as it was given to Compile.
func (s *Script) Body() string { return s.body }

// Flags are what the script declares about itself.
func (s *Script) Flags() Flags { return s.flags }

// Literals are the string literals in the source, in their order: some scripts name their keys there.
func (s *Script) Literals() []string {
	_, source, _ := cutShebang(s.body)
	literals, _ := lua.Literals(source, chunkName) // it was compiled
	return literals
}
