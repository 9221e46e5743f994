package queue

// Cue tells the head of a queue the state of the lock in this process.
type Cue int

const (
	// TryNow: the lock may be free.
	TryNow Cue = iota
	// TryLater: the lock was just granted to the previous head.
	TryLater
	// Yield: the lock is left to another process, or will be if one waits.
	Yield
)
