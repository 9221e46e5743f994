package commands

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/commands/locks/audit"
	"redlock-proxy/quorum"
)

// warnEvery is how often the log is told of locks without a TTL.
const warnEvery = time.Minute

// programs run what clients do with lock keys. It is safe for concurrent use.
type programs struct {
	engine   *program.Engine
	register Register
	locks    Locks
	settings *current
	now      func() time.Time
	logger   *slog.Logger
	audit    *audit.Log

	// endless and effectsLost count locks without a TTL and side effects that were lost.
	endless, effectsLost atomic.Int64
	// warned is when the log was told of locks without a TTL, in Unix nanoseconds.
	warned atomic.Int64
}

// counts are the locks without a TTL, and the side effects that were lost.
func (p *programs) counts() (endless, lost int64) { return p.endless.Load(), p.effectsLost.Load() }

// carry runs a program of a client and writes its reply.
func (p *programs) carry(c command.Call, what program.Program) {
	what.Holder = c.Client.Identity()
	turn := c.Client.Tracking.Begin(what.DB, what.Keys, func(key string) quorum.Key { return p.engine.Place(what.DB, key) })
	what.Tracked, what.Watches = turn.Remembers(), c.Client.Transaction.Watching()
	done, err := p.engine.Run(c.Ctx, what)
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
	p.tell(c, what.DB, done)
}

// tell tells a client what came of its program.
func (p *programs) tell(c command.Call, db int, done program.Outcome) {
	c.Client.Transaction.Changes(db, done.Edits)
	c.Client.Transaction.Finds(db, done.Found)
	p.audit.Edits(c.Client, db, done.Edits)
	p.warn(done)
	c.Out.Value(done.Reply)
	p.undoing(c.Client, db, done, c.Out)
}

// forbids says why edits are not to be made, as an error reply; it is empty where
// they may.
func (p *programs) forbids(edits []keyspace.Edit) string {
	is := p.settings.Load()
	for _, e := range edits {
		switch {
		case !e.Now.Present || e.KeepLeft:
		case e.Now.Left < 0 && is.RefuseNoTTL:
			return fmt.Sprintf("ERR lock key '%s' without an expiry: refused by no-ttl", syntax.Shown(e.Key))
		case e.Now.Left > is.MaxTTL:
			return ttlOverLimit(e.By, is.MaxTTL).Error()
		}
	}
	return ""
}

// lost counts side effects that were not carried out, and tells the log.
func (p *programs) lost(command string, cause error) {
	p.effectsLost.Add(1)
	p.logger.Warn("what a script on lock keys does beside them was not carried out", "command", command, "cause", cause)
}

// warn tells of locks that a program made and that never expire.
func (p *programs) warn(a program.Outcome) {
	for _, e := range a.Edits {
		if e.Now.Present && !e.KeepLeft && e.Now.Left < 0 {
			p.warnEndless(e.Key)
		}
	}
}

// warnEndless counts a lock without a TTL, and tells the log now and then.
func (p *programs) warnEndless(key string) {
	n := p.endless.Add(1)
	now, last := p.now().UnixNano(), p.warned.Load()
	if last != 0 && now-last < int64(warnEvery) || !p.warned.CompareAndSwap(last, now) {
		return
	}
	p.logger.Warn("locks without a TTL stay if their owner dies; no-ttl: refuse forbids them",
		slog.String("key", string(syntax.Shown(key))), slog.Int64("locks_without_ttl", n))
}

// undoing takes back what a program acquired, should its reply not be delivered.
func (p *programs) undoing(client *command.Client, db int, a program.Outcome, out *command.Reply) {
	keys, tokens := a.Acquired()
	if len(keys) == 0 {
		return
	}
	out.IfUndelivered(func() {
		p.register.Withdraw(p.engine.Places(db, keys), tokens, a.Granted)
		for _, key := range keys {
			p.audit.Note(audit.Withdrawn, client, db, key)
		}
	})
}
