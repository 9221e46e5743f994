package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
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
	// unsteady adds up to so much to each latency.
	unsteady time.Duration

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

	fakeLife
}

type fakeEntry struct {
	value   string
	expires time.Time // zero: never
}

func newFakeMaster() *fakeMaster {
	return &fakeMaster{timeout: DefaultMasterTimeout, keys: map[Key]fakeEntry{}, fakeLife: newFakeLife()}
}

func (f *fakeMaster) exec(_ context.Context, ops []*op, replies []reply, w *witness) error {
	type work struct {
		change Change
		eval   bool
	}
	batch, dbs := make([]work, len(ops)), make([]int, len(ops))
	for i, o := range ops {
		batch[i] = work{o.change, o.eval}
		dbs[i] = o.change.key.DB
	}
	got := make([]reply, len(ops))
	sent := time.Now()
	var looks []seen
	err := f.deliver(func() {
		for i, w := range batch {
			got[i] = f.do(w.change, w.eval)
		}
		looks = f.looks(dbs, sent)
	})
	if err == nil {
		w.takes(looks)
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
	if f.unsteady > 0 {
		return f.latency + rand.N(f.unsteady)
	}
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
	f.log = append(f.log, fmt.Sprintf("%d %s %s", c.kind, c.key.Name, c.token))
	held := f.look(c.key)
	if c.kind == kindRelease || c.kind == kindUndo {
		f.withdraw(c.key, c.token)
	}
	mine := held.Present && held.Value == c.token
	switch {
	case c.kind == kindRead:
		return reply{vote: voteYes, entries: f.lookAt(c.keys)}
	case c.kind == kindPlain:
		return f.plain(c)
	case c.kind == kindEdit:
		return f.edit(c.edits)
	case c.kind == kindAcquire && !held.Present, c.kind == kindExtend && mine:
		f.put(c.key, Entry{Present: true, Value: c.token, Left: c.ttl})
		return reply{vote: voteYes}
	case c.kind == kindRelease && mine,
		c.kind == kindUndo && mine && compareLeft(held.Left, c.minLeft) >= 0 && compareLeft(held.Left, c.ttl) <= 0:
		delete(f.keys, c.key)
		return reply{vote: voteYes}
	case c.kind == kindOffer && !held.Present:
		return f.offer(c)
	case c.kind == kindMend:
		return f.mend(c, held.Present)
	case !held.Present:
		return reply{vote: voteAbsent}
	case c.kind == kindRelease, c.kind == kindExtend:
		return reply{vote: voteNo, entries: []Entry{held}}
	default:
		return reply{vote: voteNo}
	}
}

// edit is what the script does with edits.
func (f *fakeMaster) edit(edits []Edit) reply {
	got := reply{vote: voteYes}
	for _, e := range edits {
		if e.removes() || e.gives() {
			f.withdraw(e.Key, e.Was.Value)
		}
		held := f.look(e.Key)
		got.entries = append(got.entries, held)
		if held.Present != e.Was.Present || held.Present && held.Value != e.Was.Value {
			got.vote = voteNo
		}
	}
	for i, e := range edits {
		switch {
		case got.vote == voteNo:
		case !e.Now.Present:
			delete(f.keys, e.Key)
		case e.KeepLeft:
			f.put(e.Key, Entry{Present: true, Value: e.Now.Value, Left: got.entries[i].Left})
		default:
			f.put(e.Key, e.Now)
		}
	}
	return got
}

func offerKey(key Key) Key { return Key{DB: key.DB, Name: offerPrefix + key.Name} }

// withdraw takes an offer of a value away.
func (f *fakeMaster) withdraw(key Key, value string) {
	if _, offered, _ := strings.Cut(f.look(offerKey(key)).Value, " "); offered == value {
		delete(f.keys, offerKey(key))
	}
}

func (f *fakeMaster) offer(c Change) reply {
	if f.look(offerKey(c.key)).Present {
		return reply{vote: voteNo}
	}
	f.put(offerKey(c.key), Entry{Present: true, Value: c.nonce + " " + c.token, Left: c.ttl})
	return reply{vote: voteYes}
}

func (f *fakeMaster) mend(c Change, present bool) reply {
	if f.look(offerKey(c.key)).Value != c.nonce+" "+c.token {
		return reply{vote: voteNo}
	}
	delete(f.keys, offerKey(c.key))
	if present {
		return reply{vote: voteNo}
	}
	f.put(c.key, Entry{Present: true, Value: c.token, Left: c.ttl})
	return reply{vote: voteYes}
}

func (f *fakeMaster) put(key Key, e Entry) {
	entry := fakeEntry{value: e.Value}
	if e.Left >= 0 {
		entry.expires = f.now().Add(e.Left)
	}
	f.keys[key] = entry
}

// look is what stands under a key now.
func (f *fakeMaster) look(key Key) Entry {
	held, ok := f.keys[key]
	switch {
	case !ok:
		return Entry{}
	case held.expires.IsZero():
		return Entry{Present: true, Value: held.value, Left: Endless}
	case !f.now().Before(held.expires):
		delete(f.keys, key)
		return Entry{}
	default:
		return Entry{Present: true, Value: held.value, Left: held.expires.Sub(f.now())}
	}
}

func (f *fakeMaster) lookAt(keys []Key) []Entry {
	var all []Entry
	for _, key := range keys {
		all = append(all, f.look(key))
	}
	return all
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
	return f.look(Key{Name: name}).Value
}
