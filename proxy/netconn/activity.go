package netconn

import "sync/atomic"

// Activity distinguishes idle connections from active connections, without a clock. It is safe for
// concurrent use.
type Activity struct{ level atomic.Int32 }

const (
	parkRequested int32 = iota // BecameIdle has returned true, so the session is asked to park
	idle                       // no activity since the last check
	active                     // activity since the last check
)

// Record records activity. It must be cheap, because it runs for every read.
func (a *Activity) Record() {
	if a.level.Load() != active {
		a.level.Store(active)
	}
}

// BecameIdle reports whether there was no activity since its last call. It returns true only once
// until activity is recorded again.
func (a *Activity) BecameIdle() bool {
	level := a.level.Load()
	return level != parkRequested && a.level.CompareAndSwap(level, level-1) && level == idle
}

// IsStillIdle reports whether there was no activity since BecameIdle returned true.
func (a *Activity) IsStillIdle() bool { return a.level.Load() == parkRequested }
