package queue

// Cue tells the head of a queue what has become of the lock in this process.
type Cue int

const (
	// TryNow: the lock may be free.
	TryNow Cue = iota
	// TryLater: it was just granted to the one before.
	TryLater
	// LookNow: others, to whom it was left, have had it, or want it no more.
	LookNow
	// Yield: it is left to another process, which still waited when that was asked last.
	Yield
)
