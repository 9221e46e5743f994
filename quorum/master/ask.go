package master

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/register"
)

// lane is where the ops of a database go.
func (m *Master) lane(db int) *lane {
	if db == 0 {
		return m.first
	}
	return m.laneOf(db)
}

// ask queues an op, or answers it at once when the master is down. The lane that it returns
// is to be launched by the caller.
func (m *Master) ask(o *op, hold bool) *lane {
	l := m.lane(o.db)
	claimed, err := l.push(o, hold)
	switch {
	case err != nil:
		m.refuse([]*op{o}, err)
	case claimed:
		return l
	}
	return nil
}

// send sends a batch, with a look at its end.
func (m *Master) send(k Link, f *Flight) bool {
	m.guard.Begin(context.Background(), &f.check, f.db, f.writes())
	m.lastSent.Store(int64(time.Since(m.begun)))
	return k.Send(f)
}

// dial makes a link for the batches of a lane.
func (m *Master) dial(db int) (Link, error) {
	return m.transport.Dial(context.Background(), db)
}

// finish hands a reply to the round that waits for it, which may be used again from then on. A
// panic there costs that reply alone.
func (m *Master) finish(o *op, r *reply) {
	defer func() {
		if p := recover(); p != nil {
			m.log.Error("an answer was not taken", "master", m.name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	switch {
	case o.round != nil:
		o.round.answer(int(o.index), r)
		o.round.letGo()
	case o.owed && (r.State == register.Unknown || r.State == register.Failed):
		m.owe(o)
	}
}

// refuse answers ops that were never sent, or not done, unless they were dropped.
func (m *Master) refuse(ops []*op, reason error) {
	for _, o := range ops {
		if o.whole || o.send() {
			m.finish(o, &reply{State: register.Failed, Err: reason})
		} else {
			o.letGo()
		}
	}
}

// Tell has the master do something in a database, and nothing waits for the answer. Where it is
// down that is not done at all, or, if owed is set, when it is back; only removals are owed.
func (m *Master) Tell(db int, do cell.Op, owed bool) { m.post(tellOp(db, do, owed)) }

// post sends an op that nothing waits for, now or, if it is owed, when the master is back.
func (m *Master) post(o *op) {
	l := m.lane(o.db)
	claimed, err := l.push(o, false)
	switch {
	case claimed:
		l.launch()
	case err != nil && o.owed:
		m.owe(o)
	}
}

// Do has the master do a command of database 0 by itself, outside of all batches, if it is up. A
// nil answer is no error.
func (m *Master) Do(ctx context.Context, words ...any) (any, error) {
	m.mu.Lock()
	cause := m.cause
	m.mu.Unlock()
	if cause != nil {
		return nil, cause
	}
	return m.transport.Do(ctx, words...)
}

// namesAtOnce is about how many keys one look at a master's names goes through: that takes it far
// less than a millisecond.
const namesAtOnce = 500

// Names returns some of the names of keys in a database, from a cursor on ("0": the first), but for
// the proxies' own, and the next cursor ("0": there is no more). It is an error where the master
// has no vote.
func (m *Master) Names(ctx context.Context, db int, cursor string) (names []string, next string, err error) {
	if err := m.whyMute(); err != nil {
		return nil, "", err
	}
	said, err := m.transport.Run(ctx, script.Names, db, cursor, namesAtOnce)
	if err != nil {
		return nil, "", err
	}
	parts, _ := said.([]any)
	for _, part := range parts {
		text, ok := part.(string)
		if !ok {
			return nil, "", fmt.Errorf("unexpected answer %.80v", part)
		}
		names = append(names, text)
	}
	if len(names) == 0 {
		return nil, "", fmt.Errorf("unexpected answer %.80v", said)
	}
	return names[1:], names[0], nil
}

// Databases returns the numbers of the databases that hold anything. It is an error where the
// master has no vote, also at the end.
func (m *Master) Databases(ctx context.Context) ([]int, error) {
	if err := m.whyMute(); err != nil {
		return nil, err
	}
	said, err := m.Do(ctx, "info", "keyspace")
	if err != nil {
		return nil, err
	}
	text, ok := said.(string)
	if !ok {
		return nil, fmt.Errorf("unexpected answer %.80v", said)
	}
	return redisinfo.Parse(text).Databases(), m.whyMute()
}

// whyMute is why the master has no vote, if it has none.
func (m *Master) whyMute() error {
	switch h := m.Health(); {
	case h.Err != nil:
		return h.Err
	case h.Quarantine != nil:
		return h.Quarantine
	}
	return nil
}
