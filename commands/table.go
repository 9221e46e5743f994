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
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/commands/move"
	"redlock-proxy/commands/pubsub"
	"redlock-proxy/commands/server"
	"redlock-proxy/quorum"
)

// Table holds the commands that the proxy answers itself. It is safe for concurrent use.
type Table struct {
	opts     Options
	settings *currentSettings
	audit    *command.Audit
	mover    *move.Mover // nil if locks cannot be moved
	keeper   *keepalive.Keeper
	router   router
	// lockKeys runs the commands of clients on lock keys.
	lockKeys *lockkeys.Runner
	// lockDetector records commands that look like locks on keys of the upstream; nil without an
	// upstream.
	lockDetector     *lockdetect.Detector
	operatorCommands *locks.OperatorCommands
	tracking         *tracking.Hub // nil if the table does not track lock keys
	messages         *pubsub.Hub   // nil if the upstream carries messages
}

// Lock describes a lock without its token.
type Lock = locks.Lock

// NewTable returns the table of a lock server: a proxy without an upstream, which also answers the
// commands that clients send when they connect.
func NewTable(opts Options) *Table { return newTable(opts.withDefaults(), nil) }

// NewRelayTable returns the table of a proxy with an upstream: the lock commands, and the commands
// whose replies merge the proxy's part with the upstream's.
func NewRelayTable(opts Options) *Table {
	opts = opts.withDefaults()
	return newTable(opts, lockdetect.New(opts.Logger))
}

// NewTableAtUpstream returns the table that the proxy uses while its locks are at the upstream.
// mastersTable is the table for locks on the masters. In the new table, lock keys are ordinary
// keys, and the lock commands fail on them.
func NewTableAtUpstream(mastersTable *Table, opts Options) *Table {
	opts = opts.withDefaults()
	opts.locksAtUpstream, opts.mover, opts.keeper = true, mastersTable.mover, mastersTable.keeper
	return newTable(opts, mastersTable.lockDetector)
}

// newTable returns the table of a proxy. detector is nil if there is no upstream.
func newTable(opts Options, detector *lockdetect.Detector) *Table {
	t := &Table{opts: opts, settings: newCurrentSettings(opts), audit: command.NewAudit(opts.Audit), lockDetector: detector}
	lockKeys := keys.NewPatterns(opts.LockKeys...)
	keyOnMasters := lockkeys.KeyOnMastersFunc(opts.KeyPrefix, keys.NewPatterns(opts.LockTags...), opts.movablePatterns())
	if t.mover = opts.mover; t.mover == nil {
		t.mover = newMover(opts, keyOnMasters)
	}
	if t.keeper = opts.keeper; t.keeper == nil {
		t.keeper = keepalive.New(opts.Locks, opts.KeptLockObserver)
	}
	if opts.locksAtUpstream {
		lockKeys = keys.NewPatterns() // this table treats them as ordinary keys
	}
	allKeyCommands := allkeys.New(allkeys.Options{
		Locks: opts.AllKeys, Register: opts.Register, LockKeys: lockKeys, KeyOnMasters: keyOnMasters, Prefix: opts.KeyPrefix,
		Random: opts.Random, Logger: opts.Logger, Audit: t.audit,
	})
	t.lockKeys = lockkeys.New(lockkeys.Options{
		Register: opts.Register, Locks: opts.Locks, KeyOnMasters: keyOnMasters, List: allKeyCommands.List, Limits: t.settings.limits,
		Now: opts.Now, Random: opts.Random, Logger: opts.Logger, Audit: t.audit,
	})
	s := eval.New(eval.Options{
		Runner: t.lockKeys, LockKeys: lockKeys, Store: opts.Scripts, Functions: opts.Functions,
		FindOwnCommand: t.Lookup, Observe: t.Observe, Now: opts.Now,
	})
	if detector == nil && opts.MessageCarrier != nil {
		t.messages = pubsub.New(opts.MessageCarrier)
	}
	tx := transaction.Transactions{Runner: t.lockKeys, Scripts: s}
	t.router = router{
		lockKeys: lockKeys, hasUpstream: detector != nil, hasMessages: t.messages != nil, scripts: s,
		lockKeyCommands: indexByName(append(t.lockKeys.Commands(), s.Commands()...)), txCommands: tx.Commands(), queue: tx.Queue,
	}
	t.tracking = newTrackingHub(opts, lockKeys)
	t.operatorCommands = locks.NewOperatorCommands(locks.OperatorOptions{
		Locks: opts.Holdings, KeyOnMasters: keyOnMasters, Prefix: opts.KeyPrefix, Keeper: t.keeper, Logger: opts.Logger, Audit: t.audit,
	})
	all := t.lockCommands(keyOnMasters)
	if lockKeys.HasPatterns() {
		all = append(all, allKeyCommands.Commands()...)
	}
	if t.messages != nil {
		all = append(all, pubsub.Commands(t.messages)...)
	}
	t.router.ownCommands = ownCommands(t.router, t.newServer(), t.operatorCommands.WaitCommand(), all, s, opts.Users)
	return t
}

// lockCommands returns the commands of package locks, except WAIT.
func (t *Table) lockCommands(keyOnMasters func(db int, key string) quorum.Key) []*command.Command {
	l := &locks.LockCommands{
		Locks: t.opts.Locks, MaxTTL: t.settings.maxTTL, KeyOnMasters: keyOnMasters, Random: t.opts.Random, Keeper: t.keeper, Audit: t.audit,
	}
	all := slices.Concat(l.Commands(), t.operatorCommands.Commands())
	if t.opts.locksAtUpstream {
		return locks.RefuseWhileAtUpstream(all, keys.NewPatterns(t.opts.LockKeys...))
	}
	return all
}

// newServer returns the commands about the proxy itself, with the counters of the table.
func (t *Table) newServer() *server.Server {
	opts := t.opts.Server
	opts.MaxClients, opts.WaiterCount, opts.LockDetector, opts.Mover = t.settings.maxClients, t.WaiterCount, t.lockDetector, t.mover
	opts.LockKeys, opts.CachedScripts = len(t.opts.LockKeys) > 0, t.router.scripts.CachedCount
	opts.KeptLocks = t.keeper.Counts
	if t.router.lockKeys.HasPatterns() {
		opts.LockKeyCounts = t.lockKeys.Counts
	}
	return server.New(opts)
}

// ownCommands returns the commands that the proxy answers itself. Without an upstream, COMMAND also
// lists the commands that run on lock keys.
func ownCommands(
	r router, srv *server.Server, wait *command.Command, locks []*command.Command, s *eval.Scripts,
	users *users.Users,
) *syntax.Names[*command.Command] {
	all := append(locks, srv.ProxyCommand())
	if users != nil {
		all = append(all, users.Command())
	}
	switch {
	case !r.hasUpstream:
		all = append(append(all, srv.Commands()...), wait)
	case r.lockKeys.HasPatterns():
		all = append(append(all, srv.MergedCommands()...), s.MergedCommand())
	default:
		all = append(all, srv.MergedCommands()...)
	}
	commandsByName := indexByName(all)
	if !r.hasUpstream && r.lockKeys.HasPatterns() {
		commandsByName["script"] = r.lockKeyCommands["script"]
		for _, name := range []string{"multi", "exec", "discard", "unwatch"} {
			commandsByName[name] = r.txCommands[name]
		}
		for _, name := range slices.Sorted(maps.Keys(r.lockKeyCommands)) {
			all = append(all, r.lockKeyCommands[name])
		}
	}
	srv.SetCatalog(all)
	return syntax.NewNames(commandsByName)
}

func indexByName(all []*command.Command) map[string]*command.Command {
	commandsByName := map[string]*command.Command{}
	for _, c := range all {
		commandsByName[c.Name] = c
	}
	return commandsByName
}

// newMover returns the mover of the lock keys, or nil if locks cannot be moved.
func newMover(opts Options, keyOnMasters func(db int, key string) quorum.Key) *move.Mover {
	if opts.MoveOptions == nil || len(opts.LockKeys) == 0 {
		return nil
	}
	moveOpts := *opts.MoveOptions
	moveOpts.LockKeys, moveOpts.KeyOnMasters, moveOpts.Prefix, moveOpts.Logger = opts.LockKeys, keyOnMasters, opts.KeyPrefix, opts.Logger
	return move.New(moveOpts)
}

// newTrackingHub returns the hub for CLIENT TRACKING, or nil if the table does not track lock keys.
func newTrackingHub(opts Options, lockKeys keys.Patterns) *tracking.Hub {
	if opts.Mark == nil || !lockKeys.HasPatterns() {
		return nil
	}
	return tracking.NewHub(tracking.Options{
		Mark: func(key quorum.Key, notify func(quorum.Report)) tracking.Mark { return opts.Mark(key, notify) },
		Read: opts.Register.Read, Logger: opts.Logger,
	})
}

// Tracking returns the hub for CLIENT TRACKING, or nil if the table does not track lock keys.
func (t *Table) Tracking() *tracking.Hub { return t.tracking }

// Keeper returns the keeper of the locks that clients have kept. The caller must run it.
func (t *Table) Keeper() *keepalive.Keeper { return t.keeper }

// Messages returns the hub for messages at a lock server, or nil if the table carries no messages.
func (t *Table) Messages() *pubsub.Hub { return t.messages }

// WaiterCount returns the number of clients that wait for a lock, or for another client's change of
// a lock key.
func (t *Table) WaiterCount() int { return t.opts.Locks.WaiterCount() }

// Locks lists at most count locks of a database whose keys match a glob, as LOCKLIST does for a
// client with all permissions. The errors are those of package locks.
func (t *Table) Locks(ctx context.Context, db int, match string, count int) ([]Lock, error) {
	return t.operatorCommands.Locks(ctx, db, match, count)
}

// LockKeys returns the globs of the lock keys; none if the proxy need not search commands for lock
// keys.
func (t *Table) LockKeys() keys.Patterns { return t.router.lockKeys }

// Lookup returns the command with this name, in any case, if the proxy answers it itself, or nil.
func (t *Table) Lookup(name []byte) *command.Command { return t.router.ownCommands.Find(name) }

// KeyRule returns the rule for the keys of a command. With an upstream, every word of an unknown
// command counts as a key. KeyRule returns nil if the command has no keys, or if there are no lock
// keys. Without an upstream, a command that neither KeyRule nor Lookup finds is unknown.
func (t *Table) KeyRule(name []byte) *keys.Rule { return t.router.keyRule(name) }

// Route decides how the proxy treats a command.
func (t *Table) Route(at Situation, words [][]byte) Decision { return t.router.route(at, words) }

// ResolveScript decides about a command after the decision Resolve. It looks up the script or
// function at the masters and the upstream, and routes the command by its contents.
func (t *Table) ResolveScript(ctx context.Context, c *command.Client, at Situation, words [][]byte) Decision {
	return t.router.adaptToConnection(at, syntax.Lower(words[0]), t.router.resolve(ctx, c, words))
}

// Preview inspects a command of total words that is too long to be held in memory, by its first
// words. locked is set if the first words show that the command uses a lock key. Otherwise, if
// known is set, places holds the words that may still be lock keys.
func (t *Table) Preview(ctx context.Context, words [][]byte, total int) (places keys.Places, locked, known bool) {
	return t.router.preview(ctx, words, total)
}

// Run answers a command, or refuses it if the client lacks a permission for it at the upstream. It
// writes nothing if CLIENT REPLY has silenced the client.
func (t *Table) Run(cmd *command.Command, c command.Call) {
	c.Command = cmd
	c.Client.Answer(c.Out, func() {
		switch {
		case !syntax.FitsArity(cmd.Arity, len(c.Args)):
			c.SyntaxError(syntax.WrongArity(cmd.Name))
		case !cmd.AlwaysFails && !checkPermission(c):
		case c.Client.OnlyListens() && pubsub.Refusal(c.Args) != "":
			c.Out.WriteError(pubsub.Refusal(c.Args))
		default:
			if !t.router.hasUpstream && cmd.HasKeys() && !cmd.Docs.Reads {
				c.Client.ChangedKeys.Add(c.Client.DB, c.Args, cmd.Places(c.Args))
			}
			cmd.Run(c)
		}
	})
}

// checkPermission reports whether the client may run a command. If not, it replies with the error.
func checkPermission(c command.Call) bool {
	if c.Client.HasAllPermissions() || server.NeedsNoLogin(c.Args) {
		return true
	}
	text := c.Client.Refusal(c.Ctx, c.Args)
	if text == "" {
		return true
	}
	if c.Client.Transaction.Open {
		c.Client.Transaction.Abort()
	}
	c.Out.WriteError(text)
	return false
}

// Observe inspects a command for the upstream. It caches a script that the command loads, and
// counts a lock that the command takes or releases. It needs at least the first lockdetect.MaxWords
// words.
func (t *Table) Observe(words [][]byte) {
	isScript := len(words) == 3 && syntax.LowerCString(words[0]) == "script"
	if t.router.lockKeys.HasPatterns() && isScript && syntax.LowerCString(words[1]) == "load" {
		t.router.scripts.CacheLoadedScript(words[2])
	}
	t.lockDetector.Count(words[:min(lockdetect.MaxWords, len(words))], t.router.lockKeys.Match)
}
