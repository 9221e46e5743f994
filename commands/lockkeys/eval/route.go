package eval

import (
	"context"
	"errors"
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/script"
)

// Target is the place where a script or function runs.
type Target uint8

// The targets.
const (
	Upstream  Target = iota
	OnMasters        // on the lock masters
	Unknown          // the source must be found first
	Refused          // it must be refused
)

// Route returns where an EVAL or FCALL runs if it has no lock key among its KEYS. With Refused,
// refusal is the error reply.
func (s *Scripts) Route(name string, words [][]byte) (at Target, refusal string) {
	if IsFunction(name) {
		return s.routeFunction(words)
	}
	n, ok := syntax.KeyCount(words, len(words))
	if !ok {
		return Upstream, "" // the upstream replies with the error
	}
	found, sure := s.cachedScript(name, words[1])
	if !sure {
		return Unknown, "" // the script may do anything
	}
	return s.routeKnownScript(found, words[3:3+n], words[3+n:])
}

// routeKnownScript implements Route for a known script, which is nil if it does not compile.
func (s *Scripts) routeKnownScript(found *script.Script, given, argv [][]byte) (at Target, refusal string) {
	switch {
	case found == nil, s.namesLockKey(found, given, argv, false):
		return OnMasters, "" // the proxy replies with the error of a script that does not compile
	case namesOf(found).flushCommand() != "":
		return Refused, FlushRefusal(namesOf(found).flushCommand())
	}
	return Upstream, ""
}

// ResolveScript implements Route after Unknown: it gets the source from the masters or upstream.
func (s *Scripts) ResolveScript(ctx context.Context, name string, words [][]byte) (at Target, refusal string) {
	if IsFunction(name) {
		return s.resolveFunction(ctx, name, words)
	}
	n, _ := syntax.KeyCount(words, len(words))
	share := script.Share{Pace: s.pace}
	if syntax.BySHA(name) {
		if len(words[1]) == syntax.SHALength {
			_, _ = s.find(ctx, syntax.Lower(words[1]), share) // without the masters the client sends the source
		}
		return s.Route(name, words)
	}
	found, err := s.cache.Load(ctx, string(words[1]), share)
	if err != nil && !errors.As(err, new(*script.CompileError)) {
		return Refused, replyOf(err)
	}
	return s.routeKnownScript(found, words[3:3+n], words[3+n:])
}

// replyOf returns the error reply for a script that could not be compiled.
func replyOf(err error) string {
	if errors.As(err, new(*script.CompileError)) || errors.As(err, new(*script.LimitError)) {
		return err.Error()
	}
	return "ERR " + err.Error()
}

// FlushRefusal returns the error for a script that removes all keys.
func FlushRefusal(command string) string {
	return fmt.Sprintf("ERR '%s' cannot be called by a script: it must also remove the lock keys; "+
		"send it by itself", command)
}

// namesLockKey reports whether a script may use a lock key although KEYS has none: a key that is
// written in the source, given as an argument, or composed of both. A script called without KEYS
// may use any name. more is set if more arguments follow.
func (s *Scripts) namesLockKey(of *script.Script, given, argv [][]byte, more bool) bool {
	n := namesOf(of)
	if len(given) == 0 {
		n = n.withoutKeys()
	}
	return search{IsLock: s.opts.LockKeys.Match, Keys: given, Argv: argv, More: more}.finds(n)
}

// Preview checks the first words of an EVAL or FCALL with total words. locked is set if the command
// is not for the upstream, watched if later arguments may be keys.
func (s *Scripts) Preview(ctx context.Context, name string, words [][]byte, total int) (locked, watched bool) {
	n, ok := syntax.KeyCount(words, total)
	if !ok {
		return false, false
	}
	given := words[3:min(3+n, len(words))]
	argv := words[min(3+n, len(words)):]
	if IsFunction(name) {
		return s.previewFunction(ctx, words, given, argv)
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
