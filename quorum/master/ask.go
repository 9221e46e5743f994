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

// lane returns the lane for the operations of a database.
func (m *Master) lane(db int) *lane {
	if db == 0 {
		return m.lane0
	}
	return m.laneFor(db)
}

// enqueue queues an op, or refuses it at once if the master is down. The caller must launch the
// returned lane, unless it is nil.
func (m *Master) enqueue(o *op, delay bool) *lane {
	l := m.lane(o.db)
	claimed, err := l.push(o, delay)
	switch {
	case err != nil:
		m.refuse([]*op{o}, err)
	case claimed:
		return l
	}
	return nil
}

// send sends a batch that ends with the guard's check of the master.
func (m *Master) send(k Link, f *Batch) bool {
	m.guard.Begin(context.Background(), &f.check, f.db, f.writes())
	m.lastSent.Store(int64(time.Since(m.startTime)))
	return k.Send(f)
}

// dial opens a link for the batches of a lane.
func (m *Master) dial(db int) (Link, error) {
	return m.transport.Dial(context.Background(), db)
}

// finish passes a reply to the round that waits for it. From then on the round may be reused. A
// panic in the round affects only this reply. If no round waits, finish stores a failed removal as
// pending.
func (m *Master) finish(o *op, r *reply) {
	defer func() {
		if p := recover(); p != nil {
			m.log.Error("internal error while processing the replies of a master; report this line", "master", m.name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	switch {
	case o.round != nil:
		o.round.handleReply(int(o.index), r)
		o.round.unref()
	case o.keepIfDown && (r.State == register.Unknown || r.State == register.Failed):
		m.addPending(o)
	}
}

// refuse fails ops that were never sent or never executed, unless they were dropped.
func (m *Master) refuse(ops []*op, reason error) {
	for _, o := range ops {
		if o.fullScript || o.markSent() {
			m.finish(o, &reply{State: register.Failed, Err: reason})
		} else {
			o.unref()
		}
	}
}

// Tell sends the master an operation in a database without waiting for the reply. If the master is
// down, Tell drops the operation, unless it is a removal and keep is set. The proxy sends a kept
// removal when the master is back.
func (m *Master) Tell(db int, cellOp cell.Op, keep bool) { m.post(noReplyOp(db, cellOp, keep)) }

// post queues an op whose reply no caller waits for. If the master is down, it keeps or drops the
// op.
func (m *Master) post(o *op) {
	l := m.lane(o.db)
	claimed, err := l.push(o, false)
	switch {
	case claimed:
		l.launch()
	case err != nil && o.keepIfDown:
		m.addPending(o)
	}
}

// Do executes one command in database 0, outside of all batches. It returns the cause if the master
// is down. A nil reply is not an error.
func (m *Master) Do(ctx context.Context, words ...any) (any, error) {
	m.mu.Lock()
	cause := m.cause
	m.mu.Unlock()
	if cause != nil {
		return nil, cause
	}
	return m.transport.Do(ctx, words...)
}

// namesPerCall is the approximate number of keys that one call of script.ReadNames visits. A call
// takes the master far less than a millisecond.
const namesPerCall = 500

// ScanKeys returns some of the keys in a database, without the proxies' own keys, and the next
// cursor. Cursor "0" starts the iteration, and the next cursor "0" ends it. ScanKeys returns an
// error if the master has no vote.
func (m *Master) ScanKeys(ctx context.Context, db int, cursor string) (names []string, next string, err error) {
	if err := m.noVoteError(); err != nil {
		return nil, "", err
	}
	raw, err := m.transport.Run(ctx, script.ReadNames, db, cursor, namesPerCall)
	if err != nil {
		return nil, "", err
	}
	parts, _ := raw.([]any)
	for _, part := range parts {
		text, ok := part.(string)
		if !ok {
			return nil, "", fmt.Errorf("unexpected reply %.80v", part)
		}
		names = append(names, text)
	}
	if len(names) == 0 {
		return nil, "", fmt.Errorf("unexpected reply %.80v", raw)
	}
	return names[1:], names[0], nil
}

// Databases returns the numbers of the databases that are not empty. It returns an error if the
// master has no vote before or after the command.
func (m *Master) Databases(ctx context.Context) ([]int, error) {
	if err := m.noVoteError(); err != nil {
		return nil, err
	}
	raw, err := m.Do(ctx, "info", "keyspace")
	if err != nil {
		return nil, err
	}
	text, ok := raw.(string)
	if !ok {
		return nil, fmt.Errorf("unexpected reply %.80v", raw)
	}
	return redisinfo.Parse(text).Databases(), m.noVoteError()
}

// noVoteError returns the reason why the master has no vote, or nil.
func (m *Master) noVoteError() error {
	switch h := m.Health(); {
	case h.Err != nil:
		return h.Err
	case h.Quarantine != nil:
		return h.Quarantine
	}
	return nil
}
