package eval

import (
	"context"
	"errors"
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/script"
)

// Target is the decision on where a script or function runs.
type Target uint8

// The targets.
const (
	Upstream  Target = iota
	OnMasters        // on the lock masters
	Unknown          // the proxy must find the source first
	Refused          // the proxy must refuse the command
)

// Route returns where an EVAL or FCALL runs if it has no lock key among its KEYS. With Refused,
// refusal is the error reply.
func (s *Scripts) Route(name string, words [][]byte) (target Target, refusal string) {
	if IsFCall(name) {
		return s.routeFunction(words)
	}
	n, ok := syntax.KeyCount(words, len(words))
	if !ok {
		return Upstream, "" // the upstream replies with the error
	}
	cached, resolved := s.cachedScript(name, words[1])
	if !resolved {
		return Unknown, "" // the script may do anything
	}
	return s.routeKnownScript(cached, words[3:3+n], words[3+n:])
}

// routeKnownScript implements Route for a known script, which is nil if it does not compile.
func (s *Scripts) routeKnownScript(sc *script.Script, keyArgs, argv [][]byte) (target Target, refusal string) {
	switch {
	case sc == nil, s.namesLockKey(sc, keyArgs, argv, false):
		return OnMasters, "" // the proxy replies with the error of a script that does not compile
	case namesOf(sc).flushCommand() != "":
		return Refused, FlushRefusal(namesOf(sc).flushCommand())
	}
	return Upstream, ""
}

// ResolveScript decides as Route does, after Route has returned Unknown. It compiles the source of
// an EVAL, or reads the source from the masters (EVALSHA) or the upstream (FCALL).
func (s *Scripts) ResolveScript(
	ctx context.Context, c *command.Client, name string, words [][]byte,
) (target Target, refusal string) {
	if IsFCall(name) {
		return s.resolveFunction(ctx, name, words)
	}
	n, _ := syntax.KeyCount(words, len(words))
	share := script.Share{Scheduler: s.scheduler, ClientDisconnected: c.HasDisconnected}
	if syntax.TakesSHA(name) {
		if len(words[1]) == syntax.SHALength {
			// If the masters do not answer, the client gets NOSCRIPT, and sends the script again.
			_, _ = s.find(ctx, syntax.Lower(words[1]), share)
		}
		return s.Route(name, words)
	}
	sc, err := s.cache.Load(ctx, string(words[1]), share)
	if err != nil && !errors.As(err, new(*script.CompileError)) {
		return Refused, compileErrorReply(err)
	}
	return s.routeKnownScript(sc, words[3:3+n], words[3+n:])
}

// compileErrorReply returns the error reply for a script that the proxy could not compile.
func compileErrorReply(err error) string {
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

// namesLockKey reports whether a script may use a lock key although KEYS has none. The name of the
// key may be in the source, be an argument, or be composed of both. A script called without KEYS
// may use any name. moreFollow is true if more arguments follow.
func (s *Scripts) namesLockKey(sc *script.Script, keyArgs, argv [][]byte, moreFollow bool) bool {
	n := namesOf(sc)
	if len(keyArgs) == 0 {
		n = n.withoutKeys()
	}
	return search{IsLockKey: s.opts.LockKeys.Match, Keys: keyArgs, Argv: argv, MoreFollow: moreFollow}.findsLockKey(n)
}

// Preview checks the first words of an EVAL or FCALL that has total words. notForUpstream is true
// if the upstream must not get the command. argsMayBeKeys is true if later arguments may be keys.
func (s *Scripts) Preview(
	ctx context.Context, name string, words [][]byte, total int,
) (notForUpstream, argsMayBeKeys bool) {
	n, ok := syntax.KeyCount(words, total)
	if !ok {
		return false, false
	}
	keyArgs := words[3:min(3+n, len(words))]
	argv := words[min(3+n, len(words)):]
	if IsFCall(name) {
		return s.previewFunction(ctx, words, keyArgs, argv)
	}
	share := script.Share{Scheduler: s.scheduler}
	var sc *script.Script
	if syntax.TakesSHA(name) {
		sc, _ = s.find(ctx, syntax.Lower(words[1]), share)
	} else {
		sc, _ = s.cache.Load(ctx, string(words[1]), share)
	}
	if sc == nil {
		return true, false
	}
	argsMayBeKeys = n == 0 || namesOf(sc).usesArguments()
	return s.namesLockKey(sc, keyArgs, argv, true), argsMayBeKeys
}
