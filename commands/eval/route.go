package commands

import (
	"context"
	"fmt"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/script"
	"redlock-proxy/commands/script/names"
)

// scriptWithoutLockKeys is the decision about an EVAL or EVALSHA among whose KEYS there is no lock key. A
// script that is not known here may do anything: it must be found first. One that does not compile is told
// so by the proxy.
func (r *router) scriptWithoutLockKeys(name string, words [][]byte) Decision {
	n, ok := script.KeyCount(words, len(words))
	if !ok {
		return Decision{} // whose error it is, the upstream tells
	}
	s := r.scripts.known(name, words[1])
	switch {
	case s == nil && script.BySHA(name):
		return r.mustLearn(name)
	case s == nil, r.namesLockKey(s, words[3:3+n], words[3+n:], false):
		return Decision{Verb: Run, Command: r.locked[name]}
	case names.OfScript(s).Flushes() != "":
		return refuse(name, flushInScript(names.OfScript(s).Flushes()))
	}
	return Decision{}
}

// flushInScript is the error for a script that removes all keys.
func flushInScript(command string) string {
	return fmt.Sprintf("ERR '%s' cannot be called by a script: the lock keys are to be removed, too; send it by itself", command)
}

// known is a script that is given by its body or its SHA-1, if it compiles, or is known here.
func (s *scripts) known(name string, given []byte) *script.Script {
	if script.BySHA(name) {
		found, _ := s.cache.Get(syntax.Lower(given))
		return found
	}
	loaded, err := s.cache.Load(string(given))
	if err != nil {
		return nil
	}
	return loaded
}

// namesLockKey reports whether a script whose KEYS are others uses a lock key all the same: one
// written in it, given in its arguments, or put together from these. A script without KEYS is taken
// to use whatever it names. More says that there are more arguments.
func (r *router) namesLockKey(s *script.Script, given, argv [][]byte, more bool) bool {
	n := names.OfScript(s)
	if len(given) == 0 {
		n = n.Free()
	}
	return names.Search{IsLock: r.lockKeys.Match, Keys: given, Argv: argv, More: more}.Finds(n)
}

// mustLearn is the decision about a command whose meaning must be learned first. Its Command does so, where
// there is no upstream.
func (r *router) mustLearn(name string) Decision {
	return Decision{Verb: Learn, Command: &command.Command{Name: name, Arity: -1, Guarded: true, Run: func(c command.Call) {
		switch d := r.learned(c.Ctx, c.Args); d.Verb {
		case Forward:
			c.Out.Error(r.noUpstream(name, c.Args))
		case NoScript:
			c.Out.Error(script.NoScript)
		default:
			d.Command.Run(c)
		}
	}}}
}

// learned finds out, where the masters and the upstream keep it, what a command does of which that could
// not be told, and decides.
func (r *router) learned(ctx context.Context, words [][]byte) Decision {
	name := syntax.Lower(words[0])
	if isFunction(name) {
		libraries, err := r.functions.read(ctx)
		if err != nil {
			return refuse(name, fmt.Sprintf("ERR '%s' of '%s': whether it uses lock keys is not known, as the upstream's functions cannot be read: %s", name, syntax.Shown(words[1]), err))
		}
		return r.decideFunction(name, words, libraries)
	}
	if len(words[1]) == script.SHALength {
		_, _ = r.scripts.find(ctx, syntax.Lower(words[1])) // without the masters the client sends it again, whole
	}
	d := r.onMasters(name, words)
	if d.Verb == Learn {
		return Decision{Verb: NoScript}
	}
	return d
}

// ahead is for a command that is too long to be held: of so many words, the first ones are given. locked is
// set where these name a lock key. Else places are the words that may still be one; known is false where
// that cannot be told.
func (r *router) ahead(ctx context.Context, words [][]byte, total int) (places keys.Places, locked, known bool) {
	rule := r.rule(words[0])
	if rule == nil {
		return keys.Places{}, false, true
	}
	places, known = rule.Places(words, total)
	if name := syntax.Lower(words[0]); known && len(words) > 2 && (script.IsEval(name) || isFunction(name)) {
		var watched bool
		if locked, watched = r.scriptAhead(ctx, name, words, total); watched {
			places[1] = keys.Span{First: 3, Last: total - 1, Step: 1}
		}
	}
	lock, _ := r.lockKeys.Split(words, places)
	return places, locked || lock >= 0, known && !hasNUL(words[0])
}

// scriptAhead looks at the first words of an EVAL or FCALL of so many: locked is set where it is not
// for the upstream, watched where the arguments that are still to come may be keys.
func (r *router) scriptAhead(ctx context.Context, name string, words [][]byte, total int) (locked, watched bool) {
	n, ok := script.KeyCount(words, total)
	if !ok {
		return false, false
	}
	given := words[3:min(3+n, len(words))]
	argv := words[min(3+n, len(words)):]
	if isFunction(name) {
		return r.functionAhead(ctx, words, given, argv)
	}
	if script.BySHA(name) {
		_, _ = r.scripts.find(ctx, syntax.Lower(words[1]))
	}
	s := r.scripts.known(name, words[1])
	if s == nil {
		return true, false
	}
	watched = n == 0 || names.OfScript(s).UsesArguments()
	return r.namesLockKey(s, given, argv, true), watched
}

// tooLong is the error for a command that is too long to be held and would have to be. words may be its
// first ones only.
func (r *router) tooLong(name string, words [][]byte) string {
	if script.BySHA(name) && len(words) > 1 && r.lockKeys.Any() && r.scripts.known(name, words[1]) == nil {
		return script.NoScript
	}
	return "ERR command too long: the proxy takes 1048576 bytes for a command of its own"
}
