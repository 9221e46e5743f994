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

// maxMasters bounds the masters of a scenario.
const maxMasters = 5

// key is the only key.
const key = "k"

// epoch is when everything begins.
const epoch = 1_000_000 * time.Second

// clock counts what has passed: slow rounds in its lower half, leases in its upper one.
type clock uint8

const (
	// slowTick is longer than a round may take, and shorter than any lease.
	slowTick = 700 * time.Millisecond
	// pauseTick is what a pause takes by the clock of the proxy.
	pauseTick = time.Millisecond
)

func (c clock) slow() int  { return int(c & 15) }
func (c clock) lease() int { return int(c >> 4) }

// passed is the time since the epoch.
func (s *Scenario) passed(c clock) time.Duration {
	return time.Duration(c.slow())*slowTick + time.Duration(c.lease())*s.leaseTick()
}

// leaseTick is longer than a short lease; it is also longer than a removal stays, or, in a
// scenario of brief leases, shorter than a round may take.
func (s *Scenario) leaseTick() time.Duration {
	if s.Brief {
		return 100 * time.Millisecond
	}
	return 11 * time.Second
}

// shortLease ends with a leaseTick.
func (s *Scenario) shortLease() time.Duration { return s.leaseTick() * 9 / 10 }

// what is something that happens to a proxy.
type what uint8

const (
	start what = iota // a client's operation starts
	end               // a round ends with these replies
	late              // a reply comes after that
	fire              // a callback's time has come
)

// input is one thing that happens to a proxy.
type input struct {
	what    what
	at      clock
	task    uint8 // the operation, or the callback's number
	round   uint8 // the round of the task
	master  uint8
	replies [maxMasters]replyID // of a round that ended; the first, of a late reply
	timeout bool                // the round did not end, but the proxy waits no longer
}

// send is a message that a proxy sends.
type send struct {
	told   bool // nothing waits for it
	task   uint8
	round  uint8
	master uint8
	op     opID
}

// answer is what a client was told.
type answer struct {
	op   uint8
	code code
	// ends is when the lease ends that it was given, by the clock since the epoch.
	ends time.Duration
	// dead are the attempts that must never have a majority after it.
	dead []cell.Attempt
	// fence is that of the lock, or 0.
	fence uint8
}

// task is an operation or a callback that runs in a proxy, as a coroutine.
type task struct {
	id     uint8
	rounds uint8
	pauses int
	// seen is all that it was told, as text.
	seen string
	next func() (struct{}, bool)
	stop func()
	wait func()
	// round is the one that it waits for, or nil; lined is set while it waits for its turn.
	round *round
	lined bool
	done  bool
	// attempts are those that it made; releases the one that it released.
	attempts []cell.Attempt
	releases []cell.Attempt
	// marked is set where it has put marks: what comes of it is a refill.
	marked bool
}

// round is one Ask.
type round struct {
	task    *task
	number  uint8
	begun   clock
	ops     []cell.Op
	decided func([]register.Reply) bool
	replies []register.Reply
	timeout bool
	// pending are the masters that had not replied when it ended.
	pending uint8
	laters  []func(int, register.Reply)
	// sign tells what the laters are.
	sign string
}

// callback is one of After.
type callback struct {
	name string
	call func()
	// long is set where it comes when a round's time has passed since, at the earliest.
	since clock
	long  bool
}

// proxy is a register with everything around it, as of one run of a log.
type proxy struct {
	*lab
	number    int
	masters   []int // its own, by their numbers
	register  *register.Register
	source    *cell.Source
	at        clock
	tasks     []*task
	running   *task
	context   string // of what runs, with all that it has seen, for the names of callbacks: what they do follows from it
	rounds    []*round
	callbacks []callback
	fired     uint8
	holder    *task // of the turn to replace the key
	sends     []send
	answers   []answer
}

// errStopped ends a coroutine that is not needed any more.
var errStopped = fmt.Errorf("stopped")

// newProxy is a proxy to which nothing has happened.
func newProxy(l *lab, number int) *proxy {
	p := &proxy{lab: l, number: number, masters: l.set(number), source: numberedSource(number)}
	options := register.Options{N: len(p.masters), Masters: p, Source: p.source, Patience: time.Duration(l.Retries)*pauseTick - 1, Keep: l.Keep}
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

// take does what an input does, and notes what the proxy sends and answers by it.
func (p *proxy) take(in input) {
	p.sends, p.answers, p.at = nil, nil, in.at
	switch in.what {
	case start:
		op := p.Ops[in.task]
		p.spawn(in.task, func(ctx context.Context, t *task) {
			p.answers = append(p.answers, p.perform(ctx, t, op))
		})
	case fire:
		cb := p.callbacks[in.task]
		p.callbacks = append(p.callbacks[:in.task:in.task], p.callbacks[in.task+1:]...)
		p.fired++
		t := p.spawnLater(100+p.fired, func(context.Context, *task) { cb.call() })
		p.holder = t // in case that it replaces the key: its context is none of ours
		p.resume(t)
	case end:
		t := p.task(in.task)
		r := t.round
		for i, m := range p.masters {
			r.replies[i] = p.reply(in.replies[m])
			if in.replies[m] == waiting {
				r.pending |= 1 << m
			}
		}
		t.seen += fmt.Sprint(in.at, in.replies[:p.total()], in.timeout)
		t.round = nil
		r.timeout = in.timeout
		p.resume(t)
	case late:
		r := p.round(in.task, in.round)
		r.pending &^= 1 << in.master
		reply := p.reply(in.replies[0])
		if p.Variant.Unnoticed && reply.State == register.Unknown {
			reply.State = register.Waiting
		}
		p.context = fmt.Sprint("late ", in.task, in.round, in.master, in.replies[0])
		for _, f := range r.laters {
			f(p.index(in.master), reply)
		}
		p.showTasks(r, in)
	}
	p.settle()
}

// showTasks notes a late reply to a take in what the tasks have seen: a release holds the
// grant that it changes in its hands, where digest does not look.
func (p *proxy) showTasks(r *round, in input) {
	if _, take := firstOf(r.ops).(cell.Take); !take {
		return
	}
	for _, t := range p.tasks {
		t.seen += fmt.Sprint("late ", in.task, in.round, in.master, in.replies[0])
	}
}

// settle lets those go on whose turn it is, and forgets what is over.
func (p *proxy) settle() {
	for again := true; again; {
		again = false
		for _, t := range p.tasks {
			if t.lined && p.holder == nil {
				t.lined, again = false, true
				p.resume(t)
			}
		}
	}
	tasks := p.tasks[:0]
	for _, t := range p.tasks {
		if !t.done {
			tasks = append(tasks, t)
		}
	}
	p.tasks = tasks
	rounds := p.rounds[:0]
	for _, r := range p.rounds {
		if r.task.round == r || r.pending != 0 && (len(r.laters) > 0 || !r.task.done) {
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

// spawn starts a coroutine and runs it up to where it waits.
func (p *proxy) spawn(id uint8, run func(context.Context, *task)) {
	p.resume(p.spawnLater(id, run))
}

func (p *proxy) spawnLater(id uint8, run func(context.Context, *task)) *task {
	t := &task{id: id}
	ctx := turns{Context: context.Background(), p: p, t: t}
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

func (p *proxy) resume(t *task) {
	t.seen += p.digest()
	before, context := p.running, p.context
	p.running, p.context = t, fmt.Sprintf("task %d %x", t.id, sumOf(t.seen))
	if _, more := t.next(); !more {
		t.done = true
		if p.holder == t {
			p.holder = nil
		}
	}
	p.running, p.context = before, context
}

// turns is the context of a task. Who waits for its end waits for a turn to replace the
// key, too: that is when the task must not run on while another has it.
type turns struct {
	context.Context
	p *proxy
	t *task
}

// Done is never closed.
func (c turns) Done() <-chan struct{} {
	if c.p.holder == c.t {
		c.p.holder = nil
	}
	for c.p.holder != nil {
		c.t.lined = true
		c.t.wait()
	}
	c.p.holder = c.t
	return nil
}

// mend has the register look at the key, and mend it at once if it finds that the masters differ.
func (p *proxy) mend(ctx context.Context) {
	ctx.Done() // takes the turn: what a register does by itself has a context of its own
	_ = p.register.Compare(ctx, []string{key}, false)
	for range 2 { // it has to lack what is held at two looks
		if i := slices.IndexFunc(p.callbacks, func(cb callback) bool { return cb.name == mendName }); i >= 0 {
			mend := p.callbacks[i].call
			p.callbacks = slices.Delete(p.callbacks, i, i+1)
			mend()
		}
	}
}
