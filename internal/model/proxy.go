package model

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// maxMasters is the maximum number of masters in a scenario.
const maxMasters = 5

// key is the only key for which the model keeps cells. otherKey is the second key of a command on
// several keys: the model only lets masters refuse the command because of it.
const key, otherKey = "k", "other"

// scenarioStart is the time at which a scenario begins.
const scenarioStart = 1_000_000 * time.Second

// clock counts the passed slow rounds in its lower four bits, and the passed leases in its upper
// four.
type clock uint8

const (
	// slowTick is longer than the limit of a round. It is shorter than any lease, except with
	// BriefLeases.
	slowTick = 700 * time.Millisecond
	// pauseTick is the length of a pause by the clock of the proxy.
	pauseTick = time.Millisecond
)

func (c clock) slowTicks() int  { return int(c & 15) }
func (c clock) leaseTicks() int { return int(c >> 4) }

// elapsedTime returns the time from scenarioStart to c.
func (s *Scenario) elapsedTime(c clock) time.Duration {
	return time.Duration(c.slowTicks())*slowTick + time.Duration(c.leaseTicks())*s.leaseTick()
}

// leaseTick returns a time that is longer than a short lease. By default, it is also longer than
// the time for which masters keep a removal. In a scenario of brief leases, it is shorter than the
// limit of a round.
func (s *Scenario) leaseTick() time.Duration {
	if s.BriefLeases {
		return 100 * time.Millisecond
	}
	return 11 * time.Second
}

// shortLease returns a lease that expires within a leaseTick.
func (s *Scenario) shortLease() time.Duration { return s.leaseTick() * 9 / 10 }

type inputKind uint8

const (
	inputStart     inputKind = iota // a client's operation starts
	inputRoundEnd                   // a round ends with these replies
	inputLateReply                  // a reply comes after the end of its round
	inputCallback                   // a callback is due
)

// input describes an event at a proxy.
type input struct {
	kind    inputKind
	at      clock
	task    uint8 // the operation, or the callback's number
	round   uint8 // the round of the task
	master  uint8
	replies [maxMasters]replyID // by master; a late reply is the first element
	timeout bool                // the round did not end, but the proxy stops waiting
}

// sentMessage describes a message that a proxy sends.
type sentMessage struct {
	oneWay bool // the sender expects no reply
	task   uint8
	round  uint8
	master uint8
	op     opID
}

// clientReply describes a reply to a client.
type clientReply struct {
	op   uint8
	code code
	// expiry is the expiry of the granted lease, since scenarioStart, or zero for never.
	expiry time.Duration
	// deadAttempts lists the attempts that must never have a majority after this reply.
	deadAttempts []cell.Attempt
	// fence is the fence of the lock, or 0.
	fence uint8
}

// task runs an operation or a callback of a proxy as a coroutine.
type task struct {
	id     uint8
	rounds uint8
	pauses int
	// inputs holds all inputs of the task, as text. It includes the digest at each of them.
	inputs string
	next   func() (struct{}, bool)
	stop   func()
	wait   func()
	// round is the round for which the task waits, or nil. waitsForTurn is set while the task waits
	// for its turn.
	round        *round
	waitsForTurn bool
	ended        bool
	// attempts lists the attempts that the task made. releases lists the attempts that it released.
	attempts []cell.Attempt
	releases []cell.Attempt
	// isRefill is set if the task has sent a mark, as only a refill does.
	isRefill bool
}

// round holds the state of one call of Ask.
type round struct {
	task      *task
	number    uint8
	startedAt clock
	ops       []cell.Op
	decided   func([]register.Reply) bool
	replies   []register.Reply
	timeout   bool
	// pending holds, as bits, the masters that had not replied when the round ended.
	pending   uint8
	lateFuncs []func(int, register.Reply)
	// signature identifies the lateFuncs.
	signature string
}

// callback holds a function that RunAfter got.
type callback struct {
	name      string
	call      func()
	createdAt clock
	// needsRoundTime is set if the callback runs only after a round's time has passed since
	// createdAt.
	needsRoundTime bool
}

// proxy runs a register with its environment for the inputs of a log.
type proxy struct {
	*tables
	number      int
	masters     []int // masters of the proxy, by their numbers
	register    *register.Register
	source      *cell.Source
	at          clock
	tasks       []*task
	runningTask *task
	// context identifies the running task and all its inputs. The task's callbacks depend on the
	// context, so their names contain the context.
	context       string
	rounds        []*round
	callbacks     []callback
	callbackCount uint8
	turnHolder    *task // the task that has the turn to replace the key
	sentMessages  []sentMessage
	clientReplies []clientReply
}

// errStopped ends a coroutine that the proxy no longer needs.
var errStopped = fmt.Errorf("stopped")

// newProxy returns a proxy without inputs.
func newProxy(l *tables, number int) *proxy {
	p := &proxy{tables: l, number: number, masters: l.masterSet(number), source: numberedSource(number)}
	options := register.Options{
		N: len(p.masters), Masters: p, Source: p.source,
		ContentionTimeout: time.Duration(l.Retries)*pauseTick - 1, PromiseNextBallot: l.KeepPromises,
	}
	if l.Variant.Options != nil {
		l.Variant.Options(&options)
	}
	p.register = register.New(options)
	return p
}

// close ends all coroutines.
func (p *proxy) close() {
	for _, t := range p.tasks {
		t.stop()
	}
}

// handle handles an input, and records the messages and replies of the proxy.
func (p *proxy) handle(in input) {
	p.sentMessages, p.clientReplies, p.at = nil, nil, in.at
	switch in.kind {
	case inputStart:
		op := p.Ops[in.task]
		p.spawn(in.task, func(ctx context.Context, t *task) {
			p.clientReplies = append(p.clientReplies, p.perform(ctx, t, op))
		})
	case inputCallback:
		cb := p.callbacks[in.task]
		p.callbacks = append(p.callbacks[:in.task:in.task], p.callbacks[in.task+1:]...)
		p.callbackCount++
		t := p.newTask(100+p.callbackCount, func(context.Context, *task) { cb.call() })
		p.turnHolder = t // a callback has no taskContext in which it could wait
		p.resume(t)
	case inputRoundEnd:
		t := p.task(in.task)
		r := t.round
		for i, m := range p.masters {
			r.replies[i] = p.reply(in.replies[m])
			if in.replies[m] == replyPending {
				r.pending |= 1 << m
			}
		}
		t.inputs += fmt.Sprint(in.at, in.replies[:p.masterCount()], in.timeout)
		t.round = nil
		r.timeout = in.timeout
		p.resume(t)
	case inputLateReply:
		r := p.round(in.task, in.round)
		r.pending &^= 1 << in.master
		reply := p.reply(in.replies[0])
		if p.Variant.IgnoreBreaks && reply.State == register.Unknown {
			reply.State = register.Waiting
		}
		p.context = fmt.Sprint("late ", in.task, in.round, in.master, in.replies[0])
		for _, f := range r.lateFuncs {
			f(p.index(in.master), reply)
		}
		p.recordLateReply(r, in)
	}
	p.finishInput()
}

// recordLateReply records a late reply to a take in the inputs of all tasks. The reply changes the
// grant in a local variable of a release, which digest does not see.
func (p *proxy) recordLateReply(r *round, in input) {
	if _, take := firstOp(r.ops).(cell.Take); !take {
		return
	}
	for _, t := range p.tasks {
		t.inputs += fmt.Sprint("late ", in.task, in.round, in.master, in.replies[0])
	}
}

// finishInput runs the tasks that wait for a free turn, and removes ended tasks and rounds.
func (p *proxy) finishInput() {
	for resumed := true; resumed; {
		resumed = false
		for _, t := range p.tasks {
			if t.waitsForTurn && p.turnHolder == nil {
				t.waitsForTurn, resumed = false, true
				p.resume(t)
			}
		}
	}
	tasks := p.tasks[:0]
	for _, t := range p.tasks {
		if !t.ended {
			tasks = append(tasks, t)
		}
	}
	p.tasks = tasks
	rounds := p.rounds[:0]
	for _, r := range p.rounds {
		if r.task.round == r || r.pending != 0 && (len(r.lateFuncs) > 0 || !r.task.ended) {
			rounds = append(rounds, r)
		}
	}
	p.rounds = rounds
}

func (p *proxy) task(id uint8) *task {
	for _, t := range p.tasks {
		if t.id == id {
			return t
		}
	}
	panic("no such task")
}

func (p *proxy) round(task, number uint8) *round {
	for _, r := range p.rounds {
		if r.task.id == task && r.number == number {
			return r
		}
	}
	panic("no such round")
}

// spawn starts a coroutine and runs it until it waits.
func (p *proxy) spawn(id uint8, run func(context.Context, *task)) {
	p.resume(p.newTask(id, run))
}

// newTask returns a coroutine that has not started yet.
func (p *proxy) newTask(id uint8, run func(context.Context, *task)) *task {
	t := &task{id: id}
	ctx := taskContext{Context: context.Background(), p: p, t: t}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if err := recover(); err != nil && err != errStopped {
				panic(err)
			}
		}()
		t.wait = func() {
			if !yield(struct{}{}) {
				panic(errStopped)
			}
		}
		run(ctx, t)
	})
	p.tasks = append(p.tasks, t)
	return t
}

// resume runs a coroutine until it waits or ends.
func (p *proxy) resume(t *task) {
	t.inputs += p.digest()
	previous, context := p.runningTask, p.context
	p.runningTask, p.context = t, fmt.Sprintf("task %d %x", t.id, sumOf(t.inputs))
	if _, more := t.next(); !more {
		t.ended = true
		if p.turnHolder == t {
			p.turnHolder = nil
		}
	}
	p.runningTask, p.context = previous, context
}

// taskContext is the context of a task. The register calls Done when it waits for its turn to
// replace the key. So Done suspends the task while another task has the turn.
type taskContext struct {
	context.Context
	p *proxy
	t *task
}

// Done waits for the turn. It returns a channel that is never closed.
func (c taskContext) Done() <-chan struct{} {
	if c.p.turnHolder == c.t {
		c.p.turnHolder = nil
	}
	for c.p.turnHolder != nil {
		c.t.waitsForTurn = true
		c.t.wait()
	}
	c.p.turnHolder = c.t
	return nil
}

// repair lets the register compare the key at all masters. If the masters differ, the scheduled
// repair runs immediately.
func (p *proxy) repair(ctx context.Context) {
	ctx.Done() // takes the turn, because the register's own work does not use this context
	_ = p.register.Compare(ctx, []string{key}, false)
	for range 2 { // the register repairs only after two comparisons
		if i := slices.IndexFunc(p.callbacks, func(cb callback) bool { return cb.name == repairName }); i >= 0 {
			repair := p.callbacks[i].call
			p.callbacks = slices.Delete(p.callbacks, i, i+1)
			repair()
		}
	}
}
