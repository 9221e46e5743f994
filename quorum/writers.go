package quorum

import (
	"context"
	"sync/atomic"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/register"
)

const (
	// writerTTL is the time for which a waiting writer keeps new holders out, and writerPause the
	// pause after which its proxy renews this time. If the proxy dies, other clients may join after
	// writerTTL.
	writerTTL   = 3 * time.Second
	writerPause = time.Second
	// writerEndTimeout limits the time for which a writer that gives up waits until its record is
	// removed.
	writerEndTimeout = register.Limit
)

// waitingWriter represents a client of this proxy that waits for an exclusive lock of a key with
// holders. Meanwhile no new holder gets the lock at any proxy.
type waitingWriter struct {
	locker *Locker
	key    Key
	// id names the record, so that one writer does not remove the record of another writer.
	id string

	stop    context.CancelFunc // nil: not announced
	granted atomic.Bool
	ended   chan struct{} // closed once the record is not renewed any more
}

func newWaitingWriter(l *Locker, key Key) *waitingWriter {
	return &waitingWriter{locker: l, key: key, id: string(l.source.Attempt()), ended: make(chan struct{})}
}

// announce records the writer in the lock if err shows that the lock was refused because of its
// holders. It renews the record until end is called. It does not wait for the masters.
func (w *waitingWriter) announce(ctx context.Context, err error) {
	if w.stop != nil || !isHeldByHolders(err) {
		return
	}
	ctx, w.stop = context.WithCancel(ctx)
	go w.keepAnnounced(ctx)
}

// keepAnnounced renews the record until ctx ends. Then it removes the record, unless the writer got
// the lock, whose value has replaced it.
func (w *waitingWriter) keepAnnounced(ctx context.Context) {
	defer close(w.ended)
	for ctx.Err() == nil {
		w.change(ctx, false, func(h *keygroup.Holders) {
			if ctx.Err() == nil {
				h.AddWriter(w.id, writerTTL)
			}
		})
		_ = pacing.Sleep(ctx, writerPause)
	}
	if !w.granted.Load() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), writerTTL)
		defer stop()
		w.change(ctx, true, func(h *keygroup.Holders) { h.RemoveWriter(w.id) })
	}
}

// end stops the renewal of the record. granted reports whether the writer got the lock. If not, end
// waits until the record is removed, so that after the writer's reply the record keeps no client
// out.
func (w *waitingWriter) end(granted bool) {
	if w.stop == nil {
		return
	}
	w.granted.Store(granted)
	w.stop()
	if granted {
		return
	}
	select {
	case <-w.ended:
	case <-time.After(writerEndTimeout):
	}
}

func (w *waitingWriter) change(ctx context.Context, leaves bool, apply func(*keygroup.Holders)) {
	_ = contained.Run(func() error {
		_, err := withSet(ctx, w.locker.Cluster, func(set *masterSet) (holderResult, error) {
			return set.changeHolders(ctx, w.key, &holderChange{leaves: leaves, apply: func(h *keygroup.Holders) error {
				apply(h)
				return nil
			}})
		})
		return err
	})
}
