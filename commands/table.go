package commands

import (
	"context"
	"maps"
	"slices"

	"redlock-proxy/commands/auth/users"
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockdetect"
	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/lockkeys/allkeys"
	"redlock-proxy/commands/lockkeys/eval"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/commands/lockkeys/transaction"
	"redlock-proxy/commands/locks"
	"redlock-proxy/commands/move"
	"redlock-proxy/commands/pubsub"
	"redlock-proxy/commands/server"
	"redlock-proxy/quorum"
)

// Table holds the commands that the proxy answers itself. It is safe for concurrent use.
type Table struct {
	opts    Options
	current *current
	audit   *command.Audit
	mover   *move.Mover // nil: locks are not moved
	router  router
	// lockKeys runs what clients do with lock keys.
	lockKeys *lockkeys.Runner
	// uncovered notices what looks like a lock on keys of the upstream; nil without one.
	uncovered *lockdetect.Notices
	holders   *locks.Holders
	tracking  *tracking.Hub // nil: lock keys are not tracked
	messages  *pubsub.Hub   // nil: messages are the upstream's
}

// Lock is what is shown of a lock: never its token.
type Lock = locks.Lock

// NewTable makes the table of a proxy without an upstream: a lock server that also answers what
// clients send when they connect.
func NewTable(opts Options) *Table { return newTable(opts.orDefault(), nil) }

// NewRelayTable makes the table of a proxy with an upstream: the lock commands, and those in whose
// replies ours are merged with the upstream's own.
func NewRelayTable(opts Options) *Table {
	opts = opts.orDefault()
	return newTable(opts, lockdetect.New(opts.Logger))
}

// NewUnmovedTable makes the table for as long as the locks of another one are at the upstream:
// there lock keys are keys like others, but LOCK and the like of them are an error.
func NewUnmovedTable(moved *Table, opts Options) *Table {
	opts = opts.orDefault()
	opts.unmoved, opts.mover = true, moved.mover
	return newTable(opts, moved.uncovered)
}

// newTable makes the table of a proxy with an upstream if there are notices of it.
func newTable(opts Options, notices *lockdetect.Notices) *Table {
	t := &Table{opts: opts, current: newCurrent(opts), audit: command.NewAudit(opts.Audit), uncovered: notices}
	lockKeys := keys.NewPatterns(opts.LockKeys...)
	place := lockkeys.Places(opts.KeyPrefix, keys.NewPatterns(opts.LockTags...), opts.moving())
	if t.mover = opts.mover; t.mover == nil {
		t.mover = newMover(opts, place)
	}
	if opts.unmoved {
		lockKeys = keys.NewPatterns() // to this table they are keys like others
	}
	see := allkeys.New(allkeys.Options{
		Locks: opts.AllKeys, Register: opts.Register, LockKeys: lockKeys, Place: place, Prefix: opts.KeyPrefix,
		Random: opts.Random, Logger: opts.Logger, Audit: t.audit,
	})
	t.lockKeys = lockkeys.New(lockkeys.Options{
		Register: opts.Register, Locks: opts.Locks, Place: place, List: see.Held, Limits: t.current.limits,
		Now: opts.Now, Random: opts.Random, Logger: opts.Logger, Audit: t.audit,
	})
	s := eval.New(eval.Options{
		Keys: t.lockKeys, LockKeys: lockKeys, Store: opts.Scripts, Functions: opts.Functions, Own: t.Lookup, Observe: t.Observe, Now: opts.Now,
	})
	if notices == nil && opts.Messages != nil {
		t.messages = pubsub.New(opts.Messages)
	}
	tx := transaction.Transactions{Keys: t.lockKeys, Scripts: s}
	t.router = router{
		lockKeys: lockKeys, relays: notices != nil, messages: t.messages != nil, scripts: s,
		locked: byName(append(t.lockKeys.Commands(), s.Commands()...)), multi: tx.Commands(), queue: tx.Queue,
	}
	t.tracking = newHub(opts, lockKeys)
	t.holders = locks.NewHolders(locks.HoldersOptions{Locks: opts.Holders, Place: place, Prefix: opts.KeyPrefix, Logger: opts.Logger, Audit: t.audit})
	all := t.lockCommands(place)
	if lockKeys.Any() {
		all = append(all, see.Commands()...)
	}
	if t.messages != nil {
		all = append(all, pubsub.Commands(t.messages)...)
	}
	t.router.own = own(t.router, t.about(), t.holders.Wait(), all, s, opts.Users)
	return t
}

// lockCommands are LOCK and the like.
func (t *Table) lockCommands(place func(db int, key string) quorum.Key) []*command.Command {
	l := &locks.Locking{Locks: t.opts.Locks, MaxTTL: t.current.maxTTL, Place: place, Random: t.opts.Random, Audit: t.audit}
	all := slices.Concat(l.Commands(), t.holders.Commands())
	if t.opts.unmoved {
		return locks.Unmoved(all, keys.NewPatterns(t.opts.LockKeys...))
	}
	return all
}

// about is what the proxy says of itself, with what the table counts.
func (t *Table) about() *server.Server {
	opts := t.opts.Server
	opts.MaxClients, opts.Waiting, opts.Uncovered, opts.Mover = t.current.maxClients, t.Waiting, t.uncovered, t.mover
	opts.LockKeys, opts.CachedScripts = len(t.opts.LockKeys) > 0, t.router.scripts.Cached
	if t.router.lockKeys.Any() {
		opts.Programs = t.lockKeys.Counts
	}
	return server.New(opts)
}

// own are the proxy's own commands. Where there is no upstream, COMMAND lists those that run on
// lock keys, too.
func own(r router, about *server.Server, wait *command.Command, locks []*command.Command, s *eval.Scripts, users *users.Users) *syntax.Names[*command.Command] {
	all := append(locks, about.Proxy())
	if users != nil {
		all = append(all, users.Command())
	}
	switch {
	case !r.relays:
		all = append(append(all, about.Commands()...), wait)
	case r.lockKeys.Any():
		all = append(append(all, about.Merged()...), s.MergedCommand())
	default:
		all = append(all, about.Merged()...)
	}
	named := byName(all)
	if !r.relays && r.lockKeys.Any() {
		named["script"] = r.locked["script"]
		for _, name := range []string{"multi", "exec", "discard", "unwatch"} {
			named[name] = r.multi[name]
		}
		for _, name := range slices.Sorted(maps.Keys(r.locked)) {
			all = append(all, r.locked[name])
		}
	}
	about.List(all)
	return syntax.NewNames(named)
}

func byName(all []*command.Command) map[string]*command.Command {
	named := map[string]*command.Command{}
	for _, c := range all {
		named[c.Name] = c
	}
	return named
}

// newMover is what moves the lock keys, if there are any.
func newMover(opts Options, place func(db int, key string) quorum.Key) *move.Mover {
	if opts.Moving == nil || len(opts.LockKeys) == 0 {
		return nil
	}
	of := *opts.Moving
	of.LockKeys, of.Place, of.Prefix, of.Logger = opts.LockKeys, place, opts.KeyPrefix, opts.Logger
	return move.New(of)
}

// newHub is what clients need who track lock keys, if there are any.
func newHub(opts Options, lockKeys keys.Patterns) *tracking.Hub {
	if opts.Mark == nil || !lockKeys.Any() {
		return nil
	}
	return tracking.NewHub(tracking.Options{
		Mark: func(key quorum.Key, notify func(quorum.News)) tracking.Mark { return opts.Mark(key, notify) },
		Read: opts.Register.Read, Logger: opts.Logger,
	})
}

// Tracking is what clients need who track lock keys; nil where that cannot be.
func (t *Table) Tracking() *tracking.Hub { return t.tracking }

// Messages carries messages at a lock server; nil where they are the upstream's.
func (t *Table) Messages() *pubsub.Hub { return t.messages }

// Waiting is how many clients wait for a lock, or for what others put under a lock key.
func (t *Table) Waiting() int { return t.opts.Locks.Waiting() }

// Locks lists at most count locks of a database whose keys match a glob, as LOCKLIST does for a
// client that may do everything. The errors are those of package locks.
func (t *Table) Locks(ctx context.Context, db int, match string, count int) ([]Lock, error) {
	return t.holders.Locks(ctx, db, match, count)
}

// LockKeys are the keys that stand on the lock masters. Commands must be looked at for them only
// where there are any.
func (t *Table) LockKeys() keys.Patterns { return t.router.lockKeys }

// Lookup finds a command of the proxy's own by its name in any case, or nil.
func (t *Table) Lookup(name []byte) *command.Command { return t.router.own.Find(name) }

// Keyed gives the rule of a command that has keys, or, for the upstream, may have; nil for any
// other one, and for all where no lock keys are configured. Without an upstream, a command that is
// not keyed and not found by Lookup is unknown.
func (t *Table) Keyed(name []byte) *keys.Rule { return t.router.rule(name) }

// Route decides what becomes of a command.
func (t *Table) Route(at Situation, words [][]byte) Decision { return t.router.route(at, words) }

// Learn is Route after the decision to learn: it finds out, where the masters and the upstream keep
// it, what the command does.
func (t *Table) Learn(ctx context.Context, at Situation, words [][]byte) Decision {
	return t.router.settled(at, syntax.Lower(words[0]), t.router.learned(ctx, words))
}

// Ahead is for a command that is too long to be held: of so many words, the first ones are given.
// Locked is set where these name a lock key. Else places are the words that may still be one; known
// is false where that is not known.
func (t *Table) Ahead(ctx context.Context, words [][]byte, total int) (places keys.Places, locked, known bool) {
	return t.router.ahead(ctx, words, total)
}

// Run answers a command. What the client has no right to at the upstream is refused. Where CLIENT
// REPLY has silenced the client, nothing is written.
func (t *Table) Run(cmd *command.Command, c command.Call) {
	c.Command = cmd
	c.Client.Answer(c.Out, func() {
		switch {
		case !syntax.Fits(cmd.Arity, len(c.Args)):
			c.Misread(syntax.WrongArity(cmd.Name))
		case !cmd.Harmless && !permitted(c):
		case c.Client.OnlyListens() && pubsub.Refusal(c.Args) != "":
			c.Out.Error(pubsub.Refusal(c.Args))
		default:
			if !t.router.relays && cmd.Keyed() && !cmd.Docs.Reads {
				c.Client.Touched.Add(c.Client.DB, c.Args, cmd.Places(c.Args))
			}
			cmd.Run(c)
		}
	})
}

// permitted asks whether the client may run a command, and answers where it may not.
func permitted(c command.Call) bool {
	if c.Client.MayAll() || server.IsOpen(c.Args) {
		return true
	}
	text := c.Client.Refusal(c.Ctx, c.Args)
	if text == "" {
		return true
	}
	if c.Client.Transaction.Open {
		c.Client.Transaction.Abort()
	}
	c.Out.Error(text)
	return false
}

// Observe takes a command that goes to the upstream, for what can be learned from it: a script that
// is loaded there, or a lock that is taken or released. At least the first lockdetect.Words words
// are given.
func (t *Table) Observe(words [][]byte) {
	if t.router.lockKeys.Any() && len(words) == 3 && syntax.Folded(words[0]) == "script" && syntax.Folded(words[1]) == "load" {
		t.router.scripts.Loaded(words[2])
	}
	t.uncovered.CountUncovered(words[:min(lockdetect.Words, len(words))], t.router.lockKeys.Match)
}
