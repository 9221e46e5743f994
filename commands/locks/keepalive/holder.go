package keepalive

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// MaxLocks limits the number of kept locks of one client.
const MaxLocks = 10000

// Client is the connection of a client with kept locks. Any goroutine may call its methods.
type Client interface {
	// HasDisconnected reports whether the client has closed its connection, or its sending side. It
	// does not wait.
	HasDisconnected() bool
	// TakesPushes reports whether the client speaks RESP3 now.
	TakesPushes() bool
	// Push calls take when no other goroutine writes to the client, and writes the pushes that take
	// returns, between two replies. If the client has disconnected or does not speak RESP3, Push
	// does not call take.
	Push(ctx context.Context, take func() []byte)
}

// Holder holds the kept locks of one client. It ends with the client's connection.
type Holder struct {
	keeper *Keeper
	client Client
	bytes  atomic.Int64 // memory of the locks, reserved ones included
	tasks  sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc

	// The Keeper's mu guards the following fields.
	locks   map[*Lock]bool
	stopped bool
	pushes  []push // pushes to write, in order
	pushing bool   // the goroutine that writes pushes is running
}

// NewHolder returns a Holder without locks. The caller must close it.
func (k *Keeper) NewHolder(client Client) *Holder {
	h := &Holder{keeper: k, client: client, locks: map[*Lock]bool{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Of returns the Holder of a client of the proxy, or nil if the client never used KEEPALIVE.
func Of(client *command.Client) *Holder {
	h, _ := client.KeptLocks.(*Holder)
	return h
}

// Size returns the memory of the client's kept locks, in bytes.
func (h *Holder) Size() int { return int(h.bytes.Load()) }

// Reserve makes room for a lock that the client is about to take or extend. The caller must call
// Keep or Cancel of the Lock.
func (h *Holder) Reserve(key quorum.Key, name, token string) (*Lock, error) {
	if !h.hasRoom(key) {
		return nil, fmt.Errorf("too many kept locks: a client may have at most %d; release some, or use another connection",
			MaxLocks)
	}
	l := &Lock{holder: h, key: key, name: name, token: token, index: notQueued}
	h.bytes.Add(int64(l.size()))
	return l, nil
}

// hasRoom reports whether the client may keep the lock of a key. If the client keeps this lock
// already, it may.
func (h *Holder) hasRoom(key quorum.Key) bool {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	return len(h.locks) < MaxLocks || h.locks[h.keeper.locks[key]]
}

// forget removes a lock. The caller holds the Keeper's mu.
func (h *Holder) forget(l *Lock) {
	delete(h.locks, l)
	h.bytes.Add(-int64(l.size()))
}

// Clear stops keeping all locks of the client. It does not release the locks: they expire, or a new
// connection takes them over with EXTEND.
func (h *Holder) Clear() {
	if h == nil {
		return
	}
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	h.dropAll()
}

func (h *Holder) dropAll() {
	for l := range h.locks {
		h.keeper.drop(l)
	}
}

// Stop does the same as Clear, permanently, because the connection has ended.
func (h *Holder) Stop() {
	if h == nil {
		return
	}
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	h.stopped = true
	h.dropAll()
}

// Close stops the Holder, and waits until its last push has ended. The client's connection must
// have been closed, or a push might wait for the client to read.
func (h *Holder) Close() {
	if h == nil {
		return
	}
	h.Stop()
	h.cancel()
	h.tasks.Wait()
}

// RenewOnce renews all locks of the client once more, before their time, and waits until the
// renewals or ctx have ended. If the proxy itself closes the connection, it first calls RenewOnce,
// so that the client has a whole TTL to reconnect. RenewOnce does not notify the client of these
// renewals.
func (h *Holder) RenewOnce(ctx context.Context) {
	if h == nil {
		return
	}
	var pending sync.WaitGroup
	h.keeper.requestRenewals(h, &pending)
	done := make(chan struct{})
	go func() { pending.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// requestRenewals moves the queued locks of a client to dueLocks. Locks that are not queued are
// being renewed already. pending counts the moved locks until their renewals end.
func (k *Keeper) requestRenewals(h *Holder, pending *sync.WaitGroup) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx == nil {
		return
	}
	for l := range h.locks {
		if l.index == notQueued {
			continue
		}
		k.queue.remove(l)
		pending.Add(1)
		l.extra = pending
		k.dueLocks = append(k.dueLocks, l)
	}
	k.startWorkers()
}
