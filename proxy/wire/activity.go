package wire

import "sync/atomic"

// Activity tells connections that are quiet from those on which something happens, without a
// clock. Any goroutine may use it.
type Activity struct{ level atomic.Int32 }

const (
	tried  int32 = iota // it was tried to park the client
	quiet               // nothing since the last look
	active              // something since the last look
)

// Happened is called for whatever happens. It must cost nothing.
func (a *Activity) Happened() {
	if a.level.Load() != active {
		a.level.Store(active)
	}
}

// WentQuiet reports whether nothing has happened since the last look but one, and that
// only once.
func (a *Activity) WentQuiet() bool {
	level := a.level.Load()
	return level != tried && a.level.CompareAndSwap(level, level-1) && level == quiet
}

// StillQuiet reports whether nothing has happened since WentQuiet said so.
func (a *Activity) StillQuiet() bool { return a.level.Load() == tried }
