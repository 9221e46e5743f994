package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

var (
	errLostReply  = errors.New("the reply was lost")
	errHung       = context.DeadlineExceeded
	errClosedLink = errors.New("closed")
	errNoScript   = errors.New("NOSCRIPT No matching script")
)

// fakeMaster imitates one Redis server by a cell.Store for each database. It uses the clock of the
// test, and fails on request.
type fakeMaster struct {
	guard.Conn // nil, because the tests run without a guard

	timeout time.Duration

	mu      sync.Mutex
	latency time.Duration
	// jitter is the largest random addition to each latency.
	jitter time.Duration
	stores map[int]*cell.Store
	// hung delays all requests until resume. Then the master executes the requests in its socket
	// buffers, before later requests.
	hung             bool
	bufferedRequests []func()
	refuses          bool // the master refuses connections
	losesReply       bool // the master loses the reply to the current batch
	// loseReplies is the number of batches that the master will execute without a reply.
	loseReplies int
	// errorFor returns the error reply to an operation, or nil.
	errorFor func(do cell.Op) error
	// unknownScripts is the number of operations that will fail, because the master does not know
	// their scripts.
	unknownScripts int
	contacts       int
	log            []string // the executed operations, in order
}

func newFakeMaster() *fakeMaster {
	return &fakeMaster{timeout: DefaultMasterTimeout, stores: map[int]*cell.Store{}}
}

// fakeLink carries batches to a fakeMaster, one at a time.
type fakeLink struct {
	master *fakeMaster
	sent   chan *master.Batch
	closed chan struct{}
	once   sync.Once
}

func (f *fakeMaster) Dial(context.Context, int) (master.Link, error) {
	return &fakeLink{master: f, sent: make(chan *master.Batch, 1), closed: make(chan struct{})}, nil
}

// Examine fails. The master votes nevertheless, because the tests run without a guard.
func (f *fakeMaster) Examine(context.Context) (guard.Report, error) {
	return guard.Report{}, resp.Error("ERR unknown command 'INFO'")
}

// Watch fails, as it does on an old server.
func (f *fakeMaster) Watch(context.Context, int) (net.Conn, error) {
	return nil, resp.Error("ERR unknown command 'CLIENT'")
}

func (k *fakeLink) Send(f *master.Batch) bool {
	select {
	case <-k.closed:
		return false
	default:
		k.sent <- f
		return true
	}
}

func (k *fakeLink) Receive() (*master.Batch, error) {
	select {
	case f := <-k.sent:
		return f, k.master.exec(f)
	case <-k.closed:
		return nil, errClosedLink
	}
}

func (k *fakeLink) Close() { k.once.Do(func() { close(k.closed) }) }

func (f *fakeMaster) exec(batch *master.Batch) error {
	type queuedOp struct {
		db         int
		do         cell.Op
		withSource bool
	}
	queued := make([]queuedOp, batch.Len())
	for i := range queued {
		queued[i].db, queued[i].do, queued[i].withSource = batch.Op(i)
	}
	got := make([]register.Reply, len(queued))
	err := f.deliver(func() {
		for i, w := range queued {
			got[i] = f.carryOut(w.db, w.do, w.withSource)
		}
	})
	for i := range queued {
		if err != nil { // the batch may still be executed
			batch.Answer(i, register.Reply{State: register.Unknown, Err: err})
		} else {
			batch.Answer(i, got[i])
		}
	}
	return err
}

// deliver lets the master execute do now. If the master hangs, it executes do when it resumes, and
// deliver returns an error after the timeout.
func (f *fakeMaster) deliver(do func()) error {
	time.Sleep(f.randomLatency()) // in a bubble, by its fake clock
	f.mu.Lock()
	defer f.mu.Unlock()
	f.contacts++
	switch {
	case f.refuses:
		return syscall.ECONNREFUSED
	case f.hung:
		f.bufferedRequests = append(f.bufferedRequests, do)
		f.mu.Unlock()
		time.Sleep(f.timeout) // in a bubble, by its fake clock
		f.mu.Lock()
		return errHung
	case f.loseReplies > 0:
		f.loseReplies--
		do()
		return errLostReply
	}
	do()
	if f.losesReply {
		f.losesReply = false
		return errLostReply
	}
	return nil
}

func (f *fakeMaster) randomLatency() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jitter > 0 {
		return f.latency + rand.N(f.jitter)
	}
	return f.latency
}

func (f *fakeMaster) setLatency(latency time.Duration) {
	f.change(func(f *fakeMaster) { f.latency = latency })
}

func (f *fakeMaster) carryOut(db int, do cell.Op, whole bool) register.Reply {
	take, isTake := do.(cell.Take)
	if native := isTake && len(take.Names) == 1; f.unknownScripts > 0 && !native && !whole {
		f.unknownScripts--
		return register.Reply{State: register.Failed, Err: errNoScript}
	}
	if f.errorFor != nil {
		if err := f.errorFor(do); err != nil {
			return register.Reply{State: register.Failed, Err: err}
		}
	}
	f.log = append(f.log, fmt.Sprintf("%T", do))
	s := f.store(db)
	return register.Reply{State: register.Counted, Answer: do.Apply(s)}
}

// store returns the store of a database, with the clock set.
func (f *fakeMaster) store(db int) *cell.Store {
	s := f.stores[db]
	if s == nil {
		s = &cell.Store{}
		f.stores[db] = s
	}
	s.Now = time.Duration(time.Now().UnixNano())
	return s
}

func foreignCell(value string) cell.Cell {
	return cell.Cell{Form: cell.Foreign, Value: cell.Value{Present: true, Text: value}}
}

func (f *fakeMaster) Probe(context.Context) (time.Duration, error) {
	err := f.deliver(func() {})
	return f.randomLatency(), err
}

func (f *fakeMaster) SetPassword(string) {}

func (f *fakeMaster) IsUnsupported(err error) bool { return errors.Is(err, errNoScript) }

func (f *fakeMaster) Close() {}

// PinServer does nothing: it is for guarded masters.
func (f *fakeMaster) PinServer(func()) {}

// Run discards an announcement.
func (f *fakeMaster) Run(context.Context, luascript.Script, ...any) (any, error) {
	return []any{"", ""}, nil
}

func (f *fakeMaster) change(apply func(*fakeMaster)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	apply(f)
}

func (f *fakeMaster) hang() { f.change(func(f *fakeMaster) { f.hung = true }) }

func (f *fakeMaster) resume() {
	f.change(func(f *fakeMaster) {
		f.hung = false
		for _, do := range f.bufferedRequests {
			do()
		}
		f.bufferedRequests = nil
	})
}

func (f *fakeMaster) refuseConnections() { f.change(func(f *fakeMaster) { f.refuses = true }) }
func (f *fakeMaster) acceptConnections() { f.change(func(f *fakeMaster) { f.refuses = false }) }
func (f *fakeMaster) loseReply()         { f.change(func(f *fakeMaster) { f.loseReplies = 1 }) }

func (f *fakeMaster) Do(_ context.Context, words ...any) (any, error) {
	var reply any
	if err := f.deliver(func() { reply = f.doWords(words) }); err != nil {
		return nil, err // the commands may still be executed
	}
	return reply, nil
}

// doWords executes the commands of ScriptBodies, without their limits.
func (f *fakeMaster) doWords(words []any) (reply any) {
	key := func() string { return fmt.Sprint(words[3], " ", words[6]) }
	s := f.store(0)
	switch {
	case words[0] == "UNLINK":
		f.stores[0] = nil
	case words[1] == saveBodyScript:
		s.Put(key(), foreignCell(fmt.Sprint(words[7])), NoExpiry)
	case words[1] == findBodyScript:
		if found := s.Get(key()); found.Form != cell.Absent {
			return found.Value.Text
		}
	}
	return nil
}

// value returns the value of a key in database 0, or "" if the key is absent. After a ballot, "*"
// follows the value; "-*" stands for a cell from which a ballot removed the value.
func (f *fakeMaster) value(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch found := f.store(0).Get(name); {
	case found.Form == cell.Absent:
		return ""
	case found.Form == cell.Register && !found.Value.Present:
		return "-*"
	case found.Form == cell.Register:
		return found.Value.Text + "*"
	default:
		return found.Value.Text
	}
}
