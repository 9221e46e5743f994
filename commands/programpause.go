package commands

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"time"

	"redlock-proxy/quorum"
)

// patience is how long a program may start over because others change its keys.
const patience = 2 * time.Second

// standstill is how long the same values without a majority must have been seen until
// nobody can be at work on them: more than the masters may take to answer and an undo
// to follow.
const standstill = patience / 2

// watcher tells when nothing moves any more.
type watcher struct {
	last  view
	since time.Time
}

// sees takes a view, and reports whether it has been the same for a standstill.
func (w *watcher) sees(v view, now time.Time) (stuck bool) {
	if !maps.EqualFunc(w.last, v, sameValue) {
		w.last, w.since = v, now
	}
	return now.Sub(w.since) >= standstill
}

func sameValue(a, b quorum.Holding) bool {
	return a.Held == b.Held && a.Free == b.Free && a.Split == b.Split && a.Value == b.Value
}

// contendedError says that others kept a program from its end.
type contendedError struct{ key string }

// Error names the key.
func (e *contendedError) Error() string {
	return fmt.Sprintf("lock key '%s' is being changed by others all the time", shown([]byte(e.key)))
}

// again is what to go on with after failures: what was seen if that says that somebody
// else has done what he wanted, or nothing, after a pause in which he may.
func (t *Table) again(ctx context.Context, p *program, seen view, failures int, until time.Time) (view, error) {
	switch {
	case t.opts.Now().After(until):
		return nil, &contendedError{p.keys[0]}
	case seen.clear() && failures < 3:
		return seen, nil
	default:
		return nil, t.pause(ctx, t.backOff(failures))
	}
}

// backOff is a random time that grows with the number of failures, so that those
// who contend for a key come at different times.
func (t *Table) backOff(failures int) time.Duration {
	var bits [8]byte
	t.opts.Random(bits[:])
	longest := time.Millisecond << min(failures, 6)
	return time.Duration(binary.NativeEndian.Uint64(bits[:]) % uint64(longest))
}

// sleep waits, or returns the cause of ctx if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
