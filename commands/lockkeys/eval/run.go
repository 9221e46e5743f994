package eval

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/commands/lockkeys/script"
	"redlock-proxy/commands/rights"
)

// Options holds the dependencies of Scripts. All must be set, except Functions.
type Options struct {
	Runner   *lockkeys.Runner
	LockKeys keys.Patterns
	Store    Store
	// Functions lists the functions of the upstream. If it is nil, the proxy does not check
	// functions.
	Functions Functions
	// FindOwnCommand finds one of the proxy's own commands, which scripts may not call.
	FindOwnCommand func(name []byte) *command.Command
	// Observe receives the words of each SCRIPT LOAD and SCRIPT FLUSH that the upstream has
	// executed. MergedCommand calls it.
	Observe func(words [][]byte)
	// Now returns the wall clock's time.
	Now func() time.Time
}

// Scripts runs the scripts of clients, and caches them. It is safe for concurrent use.
type Scripts struct {
	opts      Options
	cache     *script.Cache
	scheduler *script.Scheduler
	functions *functions

	// runs counts runs of scripts. limitedRuns counts runs, and compilations for a run, that ended
	// at a limit. It does not count compilations by SCRIPT LOAD and ResolveScript.
	runs, limitedRuns atomic.Int64
}

// New returns Scripts.
func New(opts Options) *Scripts {
	return &Scripts{
		opts: opts, cache: script.NewCache(DefaultMemory), scheduler: script.NewScheduler(),
		functions: &functions{upstream: opts.Functions, now: opts.Now},
	}
}

// Counts returns the number of runs of scripts, and the number of runs, and compilations for a run,
// that ended at a limit.
func (s *Scripts) Counts() (runs, limitedRuns int64) { return s.runs.Load(), s.limitedRuns.Load() }

// Commands returns EVAL and similar commands, and SCRIPT for a proxy without an upstream.
func (s *Scripts) Commands() []*command.Command {
	all := []*command.Command{s.scriptCommand()}
	for name, docs := range map[string]command.Docs{
		"eval":    command.DocsOf("scripting", "Runs a script on lock keys.", "2.6.0"),
		"evalsha": command.DocsOf("scripting", "Runs a script on lock keys, given by its SHA-1.", "2.6.0"),
		"eval_ro": command.DocsOf("scripting", "Runs a script that only reads lock keys.", "7.0.0"),
		"evalsha_ro": command.DocsOf(
			"scripting", "Runs a script that only reads lock keys, given by its SHA-1.", "7.0.0"),
	} {
		c := command.NewRedisCommand(name, s.eval, docs)
		c.RequiresLogin = true
		all = append(all, c)
	}
	return all
}

// invocation holds a parsed EVAL or EVALSHA.
type invocation struct {
	script     *script.Script
	keys, argv []string
	readOnly   bool
	share      script.Share
}

// eval runs EVAL, EVALSHA and their read-only forms.
func (s *Scripts) eval(c command.Call) {
	prog, errText, err := s.Program(c.Ctx, c.Client, c.Client.Rights(), syntax.Strings(c.Args), &script.Allowance{})
	switch {
	case err != nil:
		c.Out.Fail(err)
	case errText != "":
		c.Out.WriteError(errText)
	default:
		s.opts.Runner.RunProgram(c, prog)
	}
}

// Program returns the program that runs an EVAL or similar command. errText is the error reply if
// the words are wrong, or the script is unknown. All runs of the program share the allowance.
func (s *Scripts) Program(
	ctx context.Context, c *command.Client, permissions *rights.Permissions, words []string,
	allowance *script.Allowance,
) (prog program.Program, errText string, err error) {
	inv, errText, err := s.invocation(ctx, words, script.Share{Allowance: allowance, Scheduler: s.scheduler, ClientDisconnected: c.HasDisconnected})
	if err != nil || errText != "" {
		return program.Program{}, errText, err
	}
	return s.program(c, permissions, inv), "", nil
}

// invocation parses the words of an EVAL or EVALSHA. errText is the error reply if the words are
// wrong, or the script is unknown.
func (s *Scripts) invocation(
	ctx context.Context, words []string, share script.Share,
) (inv invocation, errText string, err error) {
	name := syntax.Lower(words[0])
	if errText := syntax.EvalFailure(name, words); errText != "" {
		return inv, errText, nil
	}
	n, _ := syntax.Int(words[2])
	inv = invocation{keys: words[3 : 3+n], argv: words[3+n:], readOnly: strings.HasSuffix(name, "_ro"), share: share}
	if syntax.TakesSHA(name) {
		inv.script, err = s.find(ctx, syntax.Lower(words[1]), share)
	} else {
		inv.script, err = s.cache.Load(ctx, words[1], share)
	}
	var limitErr *script.LimitError
	switch {
	case errors.As(err, &limitErr):
		s.limitedRuns.Add(1)
		return inv, limitErr.Error(), nil
	case errors.As(err, new(*script.CompileError)):
		return inv, err.Error(), nil
	case err == nil && inv.script == nil:
		errText = syntax.NoScript
	}
	return inv, errText, err
}

// program returns the program that runs an invocation.
func (s *Scripts) program(c *command.Client, permissions *rights.Permissions, inv invocation) program.Program {
	keys, listedGlobs := s.keysOf(inv), map[string]bool{}
	lastWritten := func(key string) (string, bool) { return s.opts.Runner.LastWritten(c.DB, key) }
	return program.Program{
		DB: c.DB, Rights: permissions, Keys: keys, Guesses: guessesFor(&inv.script.Memo, keys, inv.argv, lastWritten),
		Run: func(ctx context.Context, snapshot *keyspace.Snapshot) (keyspace.Reply, [][]string, error) {
			calls := scriptCalls{
				lockKeys: s.opts.LockKeys, snapshot: snapshot, rights: permissions, db: c.DB,
				listedGlobs: listedGlobs, listedKeys: c.ListedKeys, findOwnCommand: s.opts.FindOwnCommand,
			}
			s.runs.Add(1)
			reply, err := inv.script.Run(ctx, script.Input{
				Keys: inv.keys, Argv: inv.argv, ReadOnly: inv.readOnly, Share: inv.share,
				Call: calls.do, MayRun: calls.mayRun,
			})
			if limit, ok := errors.AsType[*script.LimitError](err); ok {
				s.limitedRuns.Add(1)
				// The proxy closes the connection, because each further command of the client could
				// take as long.
				c.Closing = c.Closing || limit.ClientDisconnected
				err = &program.Refusal{Text: limit.Error()}
			}
			if err == nil && calls.denied && reply.Kind == keyspace.Error {
				// A script that fails because its client lacks a permission must change nothing.
				err = &program.Refusal{Text: reply.Str}
			}
			return reply, calls.effects, err
		},
		OnCommit: func(edits []keyspace.Edit) { updateMemo(&inv.script.Memo, edits, inv.argv) },
	}
}

// keysOf returns the lock keys that a script is likely to use: from its KEYS or, without KEYS, from
// its literals and arguments.
func (s *Scripts) keysOf(inv invocation) (keys []string) {
	candidates := inv.keys
	if len(candidates) == 0 {
		candidates = slices.Concat(inv.script.Literals(), inv.argv)
	}
	for _, key := range candidates {
		if s.opts.LockKeys.Match([]byte(key)) {
			keys = append(keys, key)
		}
	}
	return syntax.Distinct(keys)
}
