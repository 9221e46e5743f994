package lockkeys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/blocking"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

// warnInterval is the shortest time between two log messages about locks without a TTL, and between
// two about lost side effects.
const warnInterval = time.Minute

// Register keeps the lock keys. A *quorum.Cluster implements it, and documents the errors.
type Register interface {
	program.Register
	Withdraw(keys []quorum.Key, grant quorum.GrantedLock)
	Guess(key quorum.Key) (token string, ok bool)
}

// Locks takes locks for clients. A *quorum.Locker implements it, and documents the errors.
type Locks interface {
	blocking.Locks
	Lock(ctx context.Context, req quorum.LockRequest) (quorum.GrantedLock, error)
	Withdraw(keys []quorum.Key, grant quorum.GrantedLock)
}

// Limits holds the limits on the TTLs of lock keys.
type Limits struct {
	// MaxTTL is the longest TTL that a client may request.
	MaxTTL time.Duration
	// RequireTTL refuses lock keys without a TTL.
	RequireTTL bool
}

// Options holds the dependencies of a Runner. All must be set, except Audit.
type Options struct {
	Register Register
	Locks    Locks
	// KeyOnMasters maps a client's key to the key on the masters.
	KeyOnMasters func(db int, key string) quorum.Key
	// List returns the lock keys of a database that match a glob.
	List func(ctx context.Context, db int, match string) ([]string, error)
	// Limits returns the current limits.
	Limits func() Limits
	// Now returns the wall clock's time. Random fills a slice with unpredictable bytes.
	Now    func() time.Time
	Random func([]byte)
	Logger *slog.Logger
	Audit  *command.Audit
}

// Runner runs the commands of clients on lock keys. It is safe for concurrent use.
type Runner struct {
	// Engine runs the programs.
	Engine *program.Engine
	opts   Options

	// locksWithoutTTL and lostEffects count locks without a TTL and lost side effects.
	locksWithoutTTL, lostEffects atomic.Int64
	// lastTTLWarning and lastEffectWarning hold the times of the last log messages about these
	// locks and side effects, in Unix nanoseconds.
	lastTTLWarning, lastEffectWarning atomic.Int64
}

// New returns a Runner.
func New(opts Options) *Runner {
	p := &Runner{opts: opts}
	p.Engine = &program.Engine{
		Register: opts.Register, KeyOnMasters: opts.KeyOnMasters, Now: opts.Now, Random: opts.Random, Pause: pacing.Sleep,
		RefuseEdits: p.refusalOf, List: opts.List, OnLostEffects: p.reportLostEffects,
	}
	return p
}

// Counts returns the number of locks that clients took without a TTL, and the number of lost side
// effects.
func (p *Runner) Counts() (locksWithoutTTL, lostEffects int64) {
	return p.locksWithoutTTL.Load(), p.lostEffects.Load()
}

// RunProgram runs a client's program, and writes the program's reply.
func (p *Runner) RunProgram(c command.Call, prog program.Program) {
	prog.Holder = c.Client.Identity()
	keyOnMasters := func(key string) quorum.Key { return p.Engine.KeyOnMasters(prog.DB, key) }
	commandRun := tracking.Of(c.Client).Begin(prog.DB, prog.Keys, keyOnMasters)
	prog.TracksKeys, prog.WatchesKeys = commandRun.Remembers(), c.Client.Transaction.HasWatchedKeys()
	outcome, err := p.Engine.Run(c.Ctx, prog)
	if commandRun != nil {
		now := time.Now()
		c.Out.OnDelivered(func() {
			if errors.As(err, new(*quorum.NoQuorumError)) {
				commandRun.Fail(now)
			} else {
				commandRun.End(outcome.KeysRead, outcome.Edits, now)
			}
		})
	}
	if err != nil {
		c.Out.Fail(err)
		return
	}
	p.writeOutcome(c, prog.DB, outcome)
}

// writeOutcome writes the reply of a program, and records the program's changes.
func (p *Runner) writeOutcome(c command.Call, db int, outcome program.Outcome) {
	for _, e := range outcome.Edits {
		if e.IsChange() {
			c.Client.Transaction.NoteChange(db, e.Key)
		}
	}
	c.Client.Transaction.NoteFound(db, outcome.FoundKeys)
	p.audit(c.Client, db, outcome.Edits)
	p.warnNoTTL(outcome)
	program.WriteReply(c.Out, outcome.Reply)
	p.withdrawIfUndelivered(c.Client, db, outcome, c.Out)
}

// audit writes a program's changes to the audit log.
func (p *Runner) audit(client *command.Client, db int, edits []keyspace.Edit) {
	for _, e := range edits {
		switch {
		case !e.Before.Present && e.After.Present:
			p.opts.Audit.Note(command.AuditGranted, client, db, e.Key)
		case e.Before.Present && !e.After.Present:
			p.opts.Audit.Note(command.AuditReleased, client, db, e.Key)
		case e.Before.Present && e.Before.Value != e.After.Value:
			p.opts.Audit.Note(command.AuditReplaced, client, db, e.Key)
		}
	}
}

// refusalOf returns the error reply that refuses edits, or "" if it allows them.
func (p *Runner) refusalOf(edits []keyspace.Edit) string {
	limits := p.opts.Limits()
	for _, e := range edits {
		switch {
		case !e.After.Present || e.KeepTTL:
		case e.After.RemainingTTL < 0 && limits.RequireTTL:
			return fmt.Sprintf("ERR lock key '%s' would have no TTL: the setting locks-without-ttl refuses this; set a TTL",
				syntax.Excerpt(e.Key))
		case e.After.RemainingTTL > limits.MaxTTL:
			return syntax.ExpireOverLimit(e.ExpiryCommand, limits.MaxTTL)
		}
	}
	return ""
}

// reportLostEffects counts commands whose side effects the upstream did not carry out. It writes at
// most one log message per warnInterval, because any client can cause such a loss.
func (p *Runner) reportLostEffects(command string, cause error) {
	n := p.lostEffects.Add(1)
	if p.isWarningDue(&p.lastEffectWarning) {
		p.opts.Logger.Warn("side effects of a script on lock keys were lost", "command", command, "cause", cause,
			"side_effects_lost", n)
	}
}

// isWarningDue reports whether warnInterval has passed since lastWarning, the time of the last log
// message. If so, it sets lastWarning to the current time.
func (p *Runner) isWarningDue(lastWarning *atomic.Int64) bool {
	now, before := p.opts.Now().UnixNano(), lastWarning.Load()
	return (before == 0 || now-before >= int64(warnInterval)) && lastWarning.CompareAndSwap(before, now)
}

// warnNoTTL counts and logs the locks to which a program gave no TTL.
func (p *Runner) warnNoTTL(a program.Outcome) {
	for _, e := range a.Edits {
		if e.After.Present && !e.KeepTTL && e.After.RemainingTTL < 0 {
			p.warnKeyNoTTL(e.Key)
		}
	}
}

// warnKeyNoTTL counts a lock without a TTL. It logs at most one such lock per warnInterval.
func (p *Runner) warnKeyNoTTL(key string) {
	n := p.locksWithoutTTL.Add(1)
	if !p.isWarningDue(&p.lastTTLWarning) {
		return
	}
	p.opts.Logger.Warn("locks without a TTL stay held if their holder dies; to forbid them, set locks-without-ttl to refuse",
		slog.String("key", string(syntax.Excerpt(key))), slog.Int64("locks_without_ttl", n))
}

// withdrawIfUndelivered removes the locks that a program took if the client does not get the reply.
func (p *Runner) withdrawIfUndelivered(client *command.Client, db int, a program.Outcome, out *command.Reply) {
	keys := a.AcquiredKeys()
	if len(keys) == 0 {
		return
	}
	out.OnUndelivered(func() {
		p.opts.Register.Withdraw(p.Engine.KeysOnMasters(db, keys), a.Grant)
		for _, key := range keys {
			p.opts.Audit.Note(command.AuditWithdrawn, client, db, key)
		}
	})
}
