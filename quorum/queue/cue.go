package queue

// Signal tells the head of a queue the state of the lock in this process.
type Signal int

const (
	// TryNow: the lock may be free.
	TryNow Signal = iota
	// TryLater: the lock was just granted to the previous head.
	TryLater
	// LeaveToPeer: the lock is left to another process, or will be if one waits.
	LeaveToPeer
)
