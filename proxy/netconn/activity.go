package netconn

import "sync/atomic"

// Activity distinguishes idle connections from active ones, without a clock. Any goroutine may use
// it.
type Activity struct{ level atomic.Int32 }

const (
	tried  int32 = iota // a request to park was made
	quiet               // no activity since the last check
	active              // activity since the last check
)

// Happened records activity. It must cost next to nothing.
func (a *Activity) Happened() {
	if a.level.Load() != active {
		a.level.Store(active)
	}
}

// WentQuiet reports whether there was no activity since its last call. It returns true only once.
func (a *Activity) WentQuiet() bool {
	level := a.level.Load()
	return level != tried && a.level.CompareAndSwap(level, level-1) && level == quiet
}

// StillQuiet reports whether there was no activity since WentQuiet returned true.
func (a *Activity) StillQuiet() bool { return a.level.Load() == tried }
