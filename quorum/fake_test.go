package quorum

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

var (
	errLostReply = errors.New("the reply was lost")
	errHung      = context.DeadlineExceeded
)

// fakeMaster is a register machine in memory that stands for one Redis. It has
// the clock of the test, and fails on request.
type fakeMaster struct {
	timeout time.Duration
	latency time.Duration

	mu   sync.Mutex
	keys map[Key]fakeEntry
	// hung: it answers nothing until it is woken. Then it does what is in its socket
	// buffers, before anything that comes later.
	hung     bool
	buffered []func()
	refuses  bool // connections
	// loseReplies is how many batches are still done without an answer.
	loseReplies int
	forgetful   int // batches in which it knows no script
	contacts    int
	log         []string // what it did, in order
}

type fakeEntry struct {
	value   string
	expires time.Time
}

func newFakeMaster() *fakeMaster {
	return &fakeMaster{timeout: DefaultMasterTimeout, keys: map[Key]fakeEntry{}}
}

func (f *fakeMaster) exec(_ context.Context, ops []*op, replies []reply) error {
	type work struct {
		change Change
		eval   bool
	}
	batch := make([]work, len(ops))
	for i, o := range ops {
		batch[i] = work{o.change, o.eval}
	}
	got := make([]reply, len(ops))
	err := f.deliver(func() {
		for i, w := range batch {
			got[i] = f.do(w.change, w.eval)
		}
	})
	if err == nil {
		copy(replies, got)
		return nil
	}
	for i := range replies {
		replies[i] = reply{err: err, unknown: true}
	}
	return err
}

// deliver has the master do something, now or (hung) once it wakes, and waits for
// it as long as the timeout.
func (f *fakeMaster) deliver(do func()) error {
	time.Sleep(f.pause())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.contacts++
	switch {
	case f.refuses:
		return syscall.ECONNREFUSED
	case f.hung:
		f.buffered = append(f.buffered, do)
		f.mu.Unlock()
		time.Sleep(f.timeout)
		f.mu.Lock()
		return errHung
	case f.loseReplies > 0:
		f.loseReplies--
		do()
		return errLostReply
	}
	do()
	return nil
}

func (f *fakeMaster) pause() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latency
}

func (f *fakeMaster) slow(latency time.Duration) {
	f.set(func(f *fakeMaster) { f.latency = latency })
}

// do is what Redis does with the command of a change.
func (f *fakeMaster) do(c Change, eval bool) reply {
	if f.forgetful > 0 && c.kind != kindAcquire && !eval {
		f.forgetful--
		return reply{err: errors.New("NOSCRIPT No matching script. Please use EVAL.")}
	}
	held, ok := f.keys[c.key]
	if ok && !time.Now().Before(held.expires) {
		delete(f.keys, c.key)
		ok = false
	}
	f.log = append(f.log, fmt.Sprintf("%d %s %s", c.kind, c.key.Name, c.token))
	mine := ok && held.value == c.token
	left := time.Until(held.expires)
	switch {
	case c.kind == kindRead && ok:
		return reply{vote: voteYes, value: held.value, left: left}
	case c.kind == kindAcquire && !ok, c.kind == kindExtend && mine:
		f.keys[c.key] = fakeEntry{c.token, time.Now().Add(c.ttl)}
		return reply{vote: voteYes}
	case c.kind == kindRelease && mine, c.kind == kindUndo && mine && left >= c.minLeft && left <= c.ttl:
		delete(f.keys, c.key)
		return reply{vote: voteYes}
	case !ok:
		return reply{vote: voteAbsent}
	default:
		return reply{vote: voteNo}
	}
}

func (f *fakeMaster) probe(context.Context) (time.Duration, error) {
	err := f.deliver(func() {})
	return f.pause(), err
}

func (f *fakeMaster) close() {}

func (f *fakeMaster) set(change func(*fakeMaster)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeMaster) hang() { f.set(func(f *fakeMaster) { f.hung = true }) }

func (f *fakeMaster) wake() {
	f.set(func(f *fakeMaster) {
		f.hung = false
		for _, do := range f.buffered {
			do()
		}
		f.buffered = nil
	})
}

func (f *fakeMaster) holds(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	held, ok := f.keys[Key{Name: name}]
	if !ok || !time.Now().Before(held.expires) {
		return ""
	}
	return held.value
}
