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

// warnEvery is how often the log mentions locks without a TTL.
const warnEvery = time.Minute

// Register is what lock keys stand in: a *quorum.Cluster, whose methods document the errors.
type Register interface {
	program.Register
	Withdraw(keys []quorum.Key, got quorum.Grant)
	Guess(key quorum.Key) (token string, ok bool)
}

// Locks is the locker behind the commands: a *quorum.Locker, whose methods document the errors.
type Locks interface {
	blocking.Locks
	Lock(ctx context.Context, req quorum.LockRequest) (quorum.Grant, error)
	Withdraw(keys []quorum.Key, got quorum.Grant)
}

// Limits are what clients may put under a lock key.
type Limits struct {
	// MaxTTL is the longest TTL that a client may ask for.
	MaxTTL time.Duration
	// RefuseNoTTL has lock keys without a TTL be refused.
	RefuseNoTTL bool
}

// Options are what a Runner works with. All must be set, but Audit.
type Options struct {
	Register Register
	Locks    Locks
	// Place is where a key stands on the masters.
	Place func(db int, key string) quorum.Key
	// List returns the lock keys of a database that match a glob.
	List func(ctx context.Context, db int, match string) ([]string, error)
	// Limits are those of now.
	Limits func() Limits
	// Now is the wall clock, and Random fills a slice with unpredictable bytes.
	Now    func() time.Time
	Random func([]byte)
	Logger *slog.Logger
	Audit  *command.Audit
}

// Runner runs what clients do with lock keys. It is safe for concurrent use.
type Runner struct {
	// Engine runs the programs.
	Engine *program.Engine
	opts   Options

	// endless and effectsLost count locks without a TTL and side effects that were lost.
	endless, effectsLost atomic.Int64
	// warned is when the log last had locks without a TTL, in Unix nanoseconds.
	warned atomic.Int64
}

// New makes one.
func New(opts Options) *Runner {
	p := &Runner{opts: opts}
	p.Engine = &program.Engine{
		Register: opts.Register, Place: opts.Place, Now: opts.Now, Random: opts.Random, Pause: pacing.Sleep, Forbids: p.forbids, List: opts.List, Lost: p.lost,
	}
	return p
}

// Counts are the locks without a TTL, and the side effects that were lost.
func (p *Runner) Counts() (endless, lost int64) { return p.endless.Load(), p.effectsLost.Load() }

// Carry runs a program of a client and writes its reply.
func (p *Runner) Carry(c command.Call, what program.Program) {
	what.Holder = c.Client.Identity()
	turn := tracking.Of(c.Client).Begin(what.DB, what.Keys, func(key string) quorum.Key { return p.Engine.Place(what.DB, key) })
	what.Tracked, what.Watches = turn.Remembers(), c.Client.Transaction.Watching()
	done, err := p.Engine.Run(c.Ctx, what)
	if turn != nil {
		now := time.Now()
		c.Out.WhenDelivered(func() {
			if errors.As(err, new(*quorum.NoQuorumError)) {
				turn.Fail(now)
			} else {
				turn.End(done.Read, done.Edits, now)
			}
		})
	}
	if err != nil {
		c.Out.Fail(err)
		return
	}
	p.answer(c, what.DB, done)
}

// answer answers a client with what came of its program.
func (p *Runner) answer(c command.Call, db int, done program.Outcome) {
	for _, e := range done.Edits {
		if e.Changes() {
			c.Client.Transaction.Changes(db, e.Key)
		}
	}
	c.Client.Transaction.Finds(db, done.Found)
	p.audit(c.Client, db, done.Edits)
	p.warn(done)
	program.Answer(c.Out, done.Reply)
	p.undoing(c.Client, db, done, c.Out)
}

// audit writes the lines of what a program made of lock keys.
func (p *Runner) audit(by *command.Client, db int, edits []keyspace.Edit) {
	for _, e := range edits {
		switch {
		case !e.Was.Present && e.Now.Present:
			p.opts.Audit.Note(command.AuditGranted, by, db, e.Key)
		case e.Was.Present && !e.Now.Present:
			p.opts.Audit.Note(command.AuditReleased, by, db, e.Key)
		case e.Was.Present && e.Was.Value != e.Now.Value:
			p.opts.Audit.Note(command.AuditReplaced, by, db, e.Key)
		}
	}
}

// forbids says why edits are not to be made, as an error reply; it is empty where
// they may.
func (p *Runner) forbids(edits []keyspace.Edit) string {
	is := p.opts.Limits()
	for _, e := range edits {
		switch {
		case !e.Now.Present || e.KeepLeft:
		case e.Now.Left < 0 && is.RefuseNoTTL:
			return fmt.Sprintf("ERR lock key '%s' without an expiry: refused by no-ttl", syntax.Shown(e.Key))
		case e.Now.Left > is.MaxTTL:
			return syntax.ExpireOverLimit(e.By, is.MaxTTL)
		}
	}
	return ""
}

// lost counts side effects that were not carried out, and logs them.
func (p *Runner) lost(command string, cause error) {
	p.effectsLost.Add(1)
	p.opts.Logger.Warn("what a script on lock keys does beside them was not carried out", "command", command, "cause", cause)
}

// warn logs locks that a program made and that never expire.
func (p *Runner) warn(a program.Outcome) {
	for _, e := range a.Edits {
		if e.Now.Present && !e.KeepLeft && e.Now.Left < 0 {
			p.warnEndless(e.Key)
		}
	}
}

// warnEndless counts a lock without a TTL, and logs it now and then.
func (p *Runner) warnEndless(key string) {
	n := p.endless.Add(1)
	now, last := p.opts.Now().UnixNano(), p.warned.Load()
	if last != 0 && now-last < int64(warnEvery) || !p.warned.CompareAndSwap(last, now) {
		return
	}
	p.opts.Logger.Warn("locks without a TTL stay if their owner dies; no-ttl: refuse forbids them",
		slog.String("key", string(syntax.Shown(key))), slog.Int64("locks_without_ttl", n))
}

// undoing takes back what a program acquired, should its reply not be delivered.
func (p *Runner) undoing(client *command.Client, db int, a program.Outcome, out *command.Reply) {
	keys := a.Acquired()
	if len(keys) == 0 {
		return
	}
	out.IfUndelivered(func() {
		p.opts.Register.Withdraw(p.Engine.Places(db, keys), a.Granted)
		for _, key := range keys {
			p.opts.Audit.Note(command.AuditWithdrawn, client, db, key)
		}
	})
}
