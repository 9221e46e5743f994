package eval

import (
	"context"
	"errors"
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/script"
)

// Where is where a script or function is carried out.
type Where uint8

// Where it may be.
const (
	Upstream Where = iota
	Here           // on the lock masters
	Unknown        // it must be learned first what it does
	Nowhere        // it is refused
)

// Route is where an EVAL or a FCALL is carried out among whose keys there is no lock key. With
// Nowhere, refusal is the error.
func (s *Scripts) Route(name string, words [][]byte) (at Where, refusal string) {
	if IsFunction(name) {
		return s.routeFunction(words)
	}
	n, ok := syntax.KeyCount(words, len(words))
	if !ok {
		return Upstream, "" // whose error it is, the upstream tells
	}
	found, sure := s.known(name, words[1])
	if !sure {
		return Unknown, "" // it may do anything
	}
	return s.placeScript(found, words[3:3+n], words[3+n:])
}

// placeScript is Route of a script that is known, or, where it is nil, does not compile.
func (s *Scripts) placeScript(found *script.Script, given, argv [][]byte) (at Where, refusal string) {
	switch {
	case found == nil, s.namesLockKey(found, given, argv, false):
		return Here, "" // also where it does not compile, which the proxy tells
	case namesOf(found).flushCommand() != "":
		return Nowhere, FlushRefusal(namesOf(found).flushCommand())
	}
	return Upstream, ""
}

// Learn is Route after Unknown: it finds out, where the masters and the upstream keep it, what the
// command does.
func (s *Scripts) Learn(ctx context.Context, name string, words [][]byte) (at Where, refusal string) {
	if IsFunction(name) {
		return s.learnFunction(ctx, name, words)
	}
	n, _ := syntax.KeyCount(words, len(words))
	share := script.Share{Pace: s.pace}
	if syntax.BySHA(name) {
		if len(words[1]) == syntax.SHALength {
			_, _ = s.find(ctx, syntax.Lower(words[1]), share) // without the masters the client sends it again, whole
		}
		return s.Route(name, words)
	}
	found, err := s.cache.Load(ctx, string(words[1]), share)
	if err != nil && !errors.As(err, new(*script.MistakeError)) {
		return Nowhere, replyOf(err)
	}
	return s.placeScript(found, words[3:3+n], words[3+n:])
}

// replyOf is the error reply for a script that could not be compiled.
func replyOf(err error) string {
	if errors.As(err, new(*script.MistakeError)) || errors.As(err, new(*script.LimitError)) {
		return err.Error()
	}
	return "ERR " + err.Error()
}

// FlushRefusal is the error for a script that removes all keys.
func FlushRefusal(command string) string {
	return fmt.Sprintf("ERR '%s' cannot be called by a script: the lock keys are to be removed, too; send it by itself", command)
}

// namesLockKey reports whether a script whose KEYS are others uses a lock key all the same: one
// written in it, given in its arguments, or put together from these. A script without KEYS is taken
// to use whatever it names. More says that there are more arguments.
func (s *Scripts) namesLockKey(of *script.Script, given, argv [][]byte, more bool) bool {
	n := namesOf(of)
	if len(given) == 0 {
		n = n.free()
	}
	return search{IsLock: s.opts.LockKeys.Match, Keys: given, Argv: argv, More: more}.finds(n)
}

// Ahead looks at the first words of an EVAL or FCALL of so many: locked is set where it is not
// for the upstream, watched where the arguments that are still to come may be keys.
func (s *Scripts) Ahead(ctx context.Context, name string, words [][]byte, total int) (locked, watched bool) {
	n, ok := syntax.KeyCount(words, total)
	if !ok {
		return false, false
	}
	given := words[3:min(3+n, len(words))]
	argv := words[min(3+n, len(words)):]
	if IsFunction(name) {
		return s.functionAhead(ctx, words, given, argv)
	}
	share := script.Share{Pace: s.pace}
	var found *script.Script
	if syntax.BySHA(name) {
		found, _ = s.find(ctx, syntax.Lower(words[1]), share)
	} else {
		found, _ = s.cache.Load(ctx, string(words[1]), share)
	}
	if found == nil {
		return true, false
	}
	watched = n == 0 || namesOf(found).usesArguments()
	return s.namesLockKey(found, given, argv, true), watched
}
