package commands

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/register"
)

// Aside carries out what scripts on lock keys do beside them, on the upstream.
type Aside interface {
	// Carry carries out the commands in the database, in order and at once, in
	// bounded time. The error says that they may not have been.
	Carry(ctx context.Context, db int, commands [][]string) error
}

// warnEvery is how often the log is told of locks without a TTL.
const warnEvery = time.Minute

// tallies count what programs on lock keys did that somebody should know of.
type tallies struct {
	endless, asidesLost atomic.Int64
	// warned is when the log was told of locks without a TTL, in Unix nanoseconds.
	warned atomic.Int64
}

// forbids says why edits are not to be made, as an error reply; it is empty where
// they may.
func (t *Table) forbids(edits []register.Edit) string {
	for _, e := range edits {
		switch {
		case !e.Now.Present || e.KeepLeft:
		case e.Now.Left < 0 && t.opts.RefuseNoTTL:
			return fmt.Sprintf("ERR lock key '%s' without an expiry: refused by no-ttl", shown([]byte(e.Key)))
		case e.Now.Left > t.opts.MaxTTL:
			return ttlOverLimit(e.By, t.opts.MaxTTL).Error()
		}
	}
	return ""
}

// conclude does what follows a program's end: what it does aside, and the warning of
// a lock that never expires.
func (t *Table) conclude(ctx context.Context, p *program, a attempt) {
	for _, e := range a.edits {
		if e.Now.Present && !e.KeepLeft && e.Now.Left < 0 {
			t.warnEndless(e.Key)
		}
	}
	if len(a.asides) == 0 {
		return
	}
	// What was committed stays so: a client that has left does not keep others from
	// hearing of it.
	if err := t.opts.Aside.Carry(context.WithoutCancel(ctx), p.db, a.asides); err != nil {
		t.tallies.asidesLost.Add(1)
		t.opts.Logger.Warn("what a script on lock keys does beside them was not carried out", "command", a.asides[0][0], "cause", err)
	}
}

// warnEndless counts a lock without a TTL, and tells the log now and then.
func (t *Table) warnEndless(key string) {
	n := t.tallies.endless.Add(1)
	now, last := t.opts.Now().UnixNano(), t.tallies.warned.Load()
	if last != 0 && now-last < int64(warnEvery) || !t.tallies.warned.CompareAndSwap(last, now) {
		return
	}
	t.opts.Logger.Warn("locks without a TTL stay if their owner dies; no-ttl: refuse forbids them",
		slog.String("key", string(shown([]byte(key)))), slog.Int64("locks_without_ttl", n))
}

// acquired are the edits that take back what an attempt acquired: keys that it found
// absent, because it asked, and gave a value. There are none if it did anything
// else.
func (a attempt) acquired() (back []register.Edit) {
	for _, e := range a.edits {
		switch {
		case !e.Changes():
		case e.Was.Present || !e.Asked:
			return nil
		default:
			back = append(back, register.Edit{Key: e.Key, Was: e.Now})
		}
	}
	return back
}

// undoing takes back what an attempt acquired, should its reply not be delivered.
func (t *Table) undoing(ctx context.Context, p *program, a attempt, out *Reply) {
	if back := t.quorumEdits(p.db, a.acquired()); len(back) > 0 {
		out.IfUndelivered(func() { _, _ = t.opts.Register.Apply(context.WithoutCancel(ctx), back) })
	}
}
