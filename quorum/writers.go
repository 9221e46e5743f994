package quorum

import (
	"context"
	"sync/atomic"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/keygroup"
)

const (
	// writerTTL is the time for which a waiting writer keeps new holders out, and writerPause the
	// pause after which its proxy renews this time. If the proxy dies, other clients may join after
	// writerTTL.
	writerTTL   = 3 * time.Second
	writerPause = time.Second
)

// waitingWriter keeps new holders, at any proxy, out of a lock while a client of this proxy waits
// for it exclusively.
type waitingWriter struct {
	locker *Locker
	key    Key

	stop    context.CancelFunc // nil: not announced
	granted atomic.Bool
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
	for ctx.Err() == nil {
		w.change(ctx, false, func(h *keygroup.Holders) { h.AddWriter(w.locker.proxyID, writerTTL) })
		_ = pacing.Sleep(ctx, writerPause)
	}
	if !w.granted.Load() {
		w.change(context.Background(), true, func(h *keygroup.Holders) { h.RemoveWriter(w.locker.proxyID) })
	}
}

// end stops the renewal of the record. granted reports whether the writer got the lock. end does
// not wait for the masters.
func (w *waitingWriter) end(granted bool) {
	if w.stop != nil {
		w.granted.Store(granted)
		w.stop()
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
