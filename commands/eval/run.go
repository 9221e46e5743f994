package commands

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/commands/rights"
	"redlock-proxy/commands/script"
)

// What is kept of scripts in this process, in scripts and in bytes of what they compile to.
const (
	maxScripts     = 1000
	maxScriptBytes = 64 << 20
)

// Scripts keep the bodies of scripts where all proxies find them.
type Scripts interface {
	// Save stores a body under its SHA-1, in lower-case hexadecimal.
	Save(ctx context.Context, sha, body string) error
	// Find returns the body with that SHA-1; ok is false if it is not there.
	Find(ctx context.Context, sha string) (body string, ok bool, err error)
	// Flush removes all bodies.
	Flush(ctx context.Context) error
}

// noScripts keeps none.
type noScripts struct{}

func (noScripts) Save(context.Context, string, string) error         { return nil }
func (noScripts) Find(context.Context, string) (string, bool, error) { return "", false, nil }
func (noScripts) Flush(context.Context) error                        { return nil }

// scripts run the scripts of clients, and know them. They are safe for concurrent use.
type scripts struct {
	*programs
	lockKeys keys.Patterns
	cache    *script.Cache
	pace     *script.Pace
	store    Scripts
	// predictions are what the keys of scripts were found to hold.
	predictions predictions
	// own are the proxy's own commands, which no script may call.
	own func(name []byte) *command.Command
	// saw is told of scripts that the upstream has learned, too.
	saw func(words [][]byte)

	// runs count runs of scripts, stopped those that were ended at a limit.
	runs, stopped atomic.Int64
}

// invocation is an EVAL or EVALSHA with its words read.
type invocation struct {
	script     *script.Script
	keys, argv []string
	readOnly   bool
}

// eval is EVAL, EVALSHA and their read-only forms.
func (s *scripts) eval(c command.Call) {
	inv, failed, err := s.invocation(c.Ctx, syntax.Strings(c.Args))
	switch {
	case err != nil:
		c.Out.Fail(err)
	case failed != "":
		c.Out.Error(failed)
	default:
		s.carry(c, s.program(c.Client, c.Client.Rights(), inv, &script.Allowance{}))
	}
}

// invocation reads the words of an EVAL or EVALSHA. failed is the error reply where
// they are wrong, or there is no such script.
func (s *scripts) invocation(ctx context.Context, words []string) (inv invocation, failed string, err error) {
	name := syntax.Lower(words[0])
	if failed := script.Failure(name, words); failed != "" {
		return inv, failed, nil
	}
	n, _ := syntax.Int(words[2])
	inv = invocation{keys: words[3 : 3+n], argv: words[3+n:], readOnly: strings.HasSuffix(name, "_ro")}
	if script.BySHA(name) {
		inv.script, err = s.find(ctx, syntax.Lower(words[1]))
		if err == nil && inv.script == nil {
			failed = script.NoScript
		}
		return inv, failed, err
	}
	if inv.script, err = s.cache.Load(words[1]); err != nil {
		return inv, err.Error(), nil
	}
	return inv, "", nil
}

// find finds a script by its SHA-1, here or where all proxies keep them; nil
// if nobody knows it.
func (s *scripts) find(ctx context.Context, sha string) (*script.Script, error) {
	if known, ok := s.cache.Get(sha); ok {
		return known, nil
	}
	body, ok, err := s.store.Find(ctx, sha)
	if err != nil || !ok {
		return nil, err
	}
	return s.cache.Load(body)
}

// program is a script as a program. The allowance is for all its runs, however
// often it has to be repeated.
func (s *scripts) program(c *command.Client, known *rights.Known, inv invocation, allowance *script.Allowance) program.Program {
	keys, listed := s.keysOf(inv), map[string]bool{}
	own := func(key string) (string, bool) { return s.register.Guess(s.engine.Place(c.DB, key)) }
	return program.Program{
		DB: c.DB, Rights: known, Keys: keys, Guesses: s.predictions.guesses(inv.script.SHA(), keys, inv.argv, own),
		Run: func(ctx context.Context, view *keyspace.Space) (keyspace.Reply, [][]string, error) {
			calls := scriptCalls{lockKeys: s.lockKeys, space: view, rights: known, db: c.DB, listed: listed, own: s.own}
			s.runs.Add(1)
			reply, err := inv.script.Run(ctx, script.Input{
				Keys: inv.keys, Argv: inv.argv, ReadOnly: inv.readOnly, Call: calls.do, Cost: view.Cost, May: calls.may, Allowance: allowance, Pace: s.pace,
			})
			if over := (*script.LimitError)(nil); errors.As(err, &over) {
				s.stopped.Add(1)
				err = &program.Refusal{Text: over.Error()}
			}
			if err == nil && calls.denied && reply.Kind == keyspace.Error {
				err = &program.Refusal{Text: reply.Str} // a script that may not do all of what it does, does nothing
			}
			return reply, calls.effects, err
		},
		Committed: func(edits []keyspace.Edit) { s.predictions.learn(inv.script.SHA(), edits, inv.argv) },
	}
}

// keysOf are the lock keys that a script is going to use: of its KEYS, or, where
// it is given none, of what is written in its body and its arguments.
func (s *scripts) keysOf(inv invocation) (keys []string) {
	candidates := inv.keys
	if len(candidates) == 0 {
		candidates = append(inv.script.Literals(), inv.argv...)
	}
	for _, key := range candidates {
		if s.lockKeys.Match([]byte(key)) {
			keys = append(keys, key)
		}
	}
	return syntax.Distinct(keys)
}
