package model

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// Ask implements [register.Masters].
func (p *proxy) Ask(_ context.Context, ops []cell.Op, decided func([]register.Reply) bool) (register.Round, error) {
	t := p.runningTask
	r := &round{
		task: t, number: t.rounds, startedAt: p.at, ops: ops, decided: decided,
		replies: make([]register.Reply, len(ops)),
	}
	t.rounds++
	p.rounds = append(p.rounds, r)
	for i, op := range ops {
		if op == nil || isOnOtherKey(op) {
			r.replies[i].State = register.Failed
			continue
		}
		t.recordAttempts(op)
		p.send(sentMessage{task: t.id, round: r.number, master: uint8(p.masters[i])}, op)
	}
	if decided(r.replies) {
		for i := range ops {
			if r.replies[i].State == register.Waiting {
				r.pending |= 1 << p.masters[i]
			}
		}
		return r, nil
	}
	t.round = r
	t.wait()
	if r.timeout {
		return r, context.DeadlineExceeded
	}
	return r, nil
}

// recordAttempts records the attempts that a task makes and releases.
func (t *task) recordAttempts(op cell.Op) {
	switch op := op.(type) {
	case cell.Take:
		if op.Mark != "" {
			t.isRefill = true
			return
		}
		t.attempts = appendNew(t.attempts, op.Attempt)
	case cell.Remove:
		if op.Mode == cell.Release {
			t.releases = appendNew(t.releases, op.Attempt)
		}
	}
}

func appendNew(attempts []cell.Attempt, attempt cell.Attempt) []cell.Attempt {
	if slices.Contains(attempts, attempt) {
		return attempts
	}
	return append(attempts, attempt)
}

// Replies implements [register.Round].
func (r *round) Replies() []register.Reply { return r.replies }

// OnLaterReply implements [register.Round].
func (r *round) OnLaterReply(f func(int, register.Reply)) {
	r.lateFuncs = append(r.lateFuncs, f)
	r.signature += fmt.Sprint(" ", reflect.ValueOf(f).Pointer())
	if _, take := firstOp(r.ops).(cell.Take); !take {
		r.signature += r.task.inputs
	}
}

// isOnOtherKey reports whether an operation concerns only the other key, for which the model keeps
// no cell.
func isOnOtherKey(op cell.Op) bool { return op.Keys()[0] == otherKey }

// firstOp returns the first operation of a round.
func firstOp(ops []cell.Op) cell.Op {
	for _, op := range ops {
		if op != nil {
			return op
		}
	}
	return nil
}

// Drop implements [register.Round]. Sent messages stay in flight.
func (r *round) Drop() {}

// Release implements [register.Round]. It does nothing, because the model does not reuse rounds.
func (r *round) Release() {}

// Tell implements [register.Masters].
func (p *proxy) Tell(master int, op cell.Op, _ bool) {
	if isOnOtherKey(op) {
		return
	}
	p.send(sentMessage{oneWay: true, master: uint8(p.masters[master])}, op)
}

func (p *proxy) send(s sentMessage, op cell.Op) {
	if p.Variant.ChangeOp != nil {
		op = p.Variant.ChangeOp(op)
		if op == nil {
			return
		}
	}
	s.op = p.op(op)
	p.sentMessages = append(p.sentMessages, s)
}

// repairName is the name of the callback that repairs the key.
const repairName = "repair"

// HasAllVotes implements [register.Masters].
func (p *proxy) HasAllVotes() bool { return true }

// ScheduleCompare implements [register.Masters].
func (p *proxy) ScheduleCompare() {}

// VoterCount implements [register.Masters].
func (p *proxy) VoterCount() int { return len(p.masters) }

// index returns the index of a master in the proxy's list of masters.
func (p *proxy) index(master uint8) int { return slices.Index(p.masters, int(master)) }

// Clock implements [register.Masters]. Zero never raises a fence.
func (p *proxy) Clock() time.Duration { return 0 }

// RunAfter implements [register.Masters].
func (p *proxy) RunAfter(d time.Duration, f func()) {
	name := repairName
	if d != register.RepairPause {
		name = fmt.Sprint(d, " after ", p.context)
	}
	sameName := 0
	for _, cb := range p.callbacks {
		if strings.HasPrefix(cb.name, name) {
			sameName++
		}
	}
	if sameName > 0 {
		name += fmt.Sprint(" #", sameName)
	}
	skipsWait := p.SkipRefillWait && p.runningTask != nil && p.runningTask.isRefill
	p.callbacks = append(p.callbacks, callback{name: name, call: f, createdAt: p.at, needsRoundTime: d > register.Limit && !skipsWait})
}

// Pause implements [register.Masters].
func (p *proxy) Pause(context.Context, int) error {
	p.runningTask.pauses++
	return nil
}

// Now implements [register.Masters].
func (p *proxy) Now() time.Time {
	now := time.Unix(0, 0).Add(scenarioStart + p.elapsedTime(p.at))
	if p.runningTask != nil {
		now = now.Add(time.Duration(p.runningTask.pauses) * pauseTick)
	}
	return now
}
