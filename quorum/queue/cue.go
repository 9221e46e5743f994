package queue

// Cue tells the head of a queue what has become of the lock in this process.
type Cue int

const (
	// TryNow: the lock may be free.
	TryNow Cue = iota
	// TryLater: it was just granted to the one before.
	TryLater
	// Yield: it is left to another process, or is going to be if one waits.
	Yield
)
