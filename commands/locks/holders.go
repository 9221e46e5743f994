package locks

import (
	"context"
	"log/slog"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/quorum"
)

// OperatorLocks reads and removes locks for OperatorCommands. *quorum.Locker implements it, and
// documents the errors.
type OperatorLocks interface {
	Holdings(ctx context.Context, keys []quorum.Key) ([]quorum.Holding, error)
	Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error
	Remove(ctx context.Context, key quorum.Key) (bool, error)
}

// OperatorOptions configures OperatorCommands. All fields but Prefix and Audit are required.
type OperatorOptions struct {
	Locks OperatorLocks
	// KeyOnMasters returns the key of a lock on the masters. The key begins with Prefix.
	KeyOnMasters func(db int, key string) quorum.Key
	Prefix       string
	// Keeper renews the locks that clients have kept.
	Keeper *keepalive.Keeper
	// Logger logs each FORCEUNLOCK and LOCKLIST.
	Logger *slog.Logger
	Audit  *command.Audit
}

// OperatorCommands implements the commands for operators, and WAIT. LOCKINFO and LOCKLIST return
// the holders of locks, FORCEUNLOCK releases a lock regardless of its holder, and WAIT waits until
// more masters have the client's changes. No command returns a token. OperatorCommands is safe for
// concurrent use.
type OperatorCommands struct {
	opts OperatorOptions
	// listSlot is full while a LOCKLIST runs, because only one LOCKLIST runs at a time.
	listSlot chan struct{}
}

// NewOperatorCommands returns OperatorCommands with these options.
func NewOperatorCommands(opts OperatorOptions) *OperatorCommands {
	return &OperatorCommands{opts: opts, listSlot: make(chan struct{}, 1)}
}

// Commands returns LOCKINFO, LOCKLIST and FORCEUNLOCK.
func (h *OperatorCommands) Commands() []*command.Command {
	info := operatorDocs("Returns whether a lock is held, for how long, by which masters, "+
		"and, if this proxy knows it, by which client.",
		"O(N) with N masters, in one round trip")
	info.Categories = "read slow"
	info.FirstArgIsKey, info.Reads, info.Args = true, true, []command.Argument{command.Key()}
	list := operatorDocs("Lists the locks that a majority of the masters holds, with the fields of LOCKINFO.",
		"O(N*K) with N masters and K keys on each")
	list.Reads, list.Categories = true, "keyspace read slow dangerous"
	list.Args = []command.Argument{
		command.Optional(command.GlobAfter("MATCH", "pattern")), command.Optional(command.IntegerAfter("COUNT", "count")),
	}
	force := operatorDocs("Releases a lock regardless of its holders, or only for the holder with a token. "+
		"Returns 1, or 0 if no client holds it.",
		"O(N) with N masters, in two round trips")
	force.Categories = "keyspace write admin slow dangerous"
	force.FirstArgIsKey, force.Args = true, []command.Argument{command.Key(), command.Optional(command.Text("token"))}
	return []*command.Command{
		{Name: "lockinfo", Arity: 2, RequiresLogin: true, Run: h.info, Docs: info},
		{Name: "locklist", Arity: -1, RequiresLogin: true, AffectsAllLocks: true, Run: h.list, Docs: list},
		{Name: "forceunlock", Arity: -2, RequiresLogin: true, Run: h.force, Docs: force},
	}
}

// operatorDocs returns the documentation of a command for operators. Since is a version of the
// proxy.
func operatorDocs(summary, complexity string) command.Docs {
	return command.Docs{Group: command.OwnGroup, Summary: summary, Since: "0.1.0", Complexity: complexity}
}

// info implements LOCKINFO key.
func (h *OperatorCommands) info(c command.Call) {
	key := string(c.Args[1])
	if key == "" {
		c.Out.WriteError("ERR empty key in 'lockinfo' command")
		return
	}
	keyOnMasters := h.opts.KeyOnMasters(c.Client.DB, key)
	holdings, err := h.opts.Locks.Holdings(c.Ctx, []quorum.Key{keyOnMasters})
	if err != nil {
		c.Out.Fail(err)
		return
	}
	writeLock(c.Out, h.describe("", keyOnMasters, holdings[0]))
}

// force implements FORCEUNLOCK key [token].
func (h *OperatorCommands) force(c command.Call) {
	key := string(c.Args[1])
	switch {
	case key == "":
		c.Out.WriteError("ERR empty key in 'forceunlock' command")
		return
	case len(c.Args) > 3:
		c.SyntaxError(syntax.ErrSyntax)
		return
	case len(c.Args) == 3 && len(c.Args[2]) == 0:
		c.Out.WriteError("ERR empty token in 'forceunlock' command")
		return
	}
	keyOnMasters := h.opts.KeyOnMasters(c.Client.DB, key)
	if len(c.Args) == 3 {
		keyOnMasters = keyOnMasters.OfHolder(contents.EncodeText(string(c.Args[2])))
	}
	removed, err := h.opts.Locks.Remove(c.Ctx, keyOnMasters)
	log := h.opts.Logger.With("key", command.ShownKey(key), "db", c.Client.DB, c.Client.LogAttr())
	if err != nil {
		log.Warn("FORCEUNLOCK failed", "cause", err)
		c.Out.Fail(err)
		return
	}
	log.Info("FORCEUNLOCK", "removed", removed, "one_holder", keyOnMasters.Holder != "")
	if !removed {
		c.Out.WriteInt(0)
		return
	}
	h.removeForced(keyOnMasters)
	h.opts.Audit.Note(command.AuditForced, c.Client, c.Client.DB, key)
	c.Out.WriteInt(1)
}

// removeForced removes the kept locks that FORCEUNLOCK released, and tells their clients. If
// key.Holder is set, removeForced removes only the kept lock with that token.
func (h *OperatorCommands) removeForced(key quorum.Key) {
	if key.Holder == "" {
		h.opts.Keeper.RemoveAllLost(key, keepalive.Forced)
		return
	}
	h.opts.Keeper.RemoveLost(key, key.Holder, keepalive.Forced)
	h.opts.Keeper.RemoveLost(key.OfHolder(""), key.Holder, keepalive.Forced)
}
