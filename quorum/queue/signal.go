package queue

// Signal tells the head of a queue the state of the lock in this process.
type Signal int

const (
	// TryNow means that the lock may be free.
	TryNow Signal = iota
	// TryLater means that the lock was just granted to the previous head.
	TryLater
	// LeaveToPeer means that the lock is left to another process, or will be if one waits.
	LeaveToPeer
)
