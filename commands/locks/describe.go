package locks

import (
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// Lock is what is shown of a lock: never its token.
type Lock struct {
	// Key is empty where it need not be told.
	Key string
	// State is held, free, split or unclear.
	State string
	// Left is the remaining time that a majority grants, or quorum.Endless; only of one that is
	// held.
	Left time.Duration
	// Votes are what each server says.
	Votes []quorum.Share
	// Fence is not below that of any lock of the key so far; 0 where none had one.
	Fence int64
	// Waiters are the clients that wait for it here.
	Waiters int
	// Since is when it was granted here, zero where it was not; Addr and Name are then the
	// client's, as far as they are known.
	Since      time.Time
	Addr, Name string
}

// statuses are the words for what stands under a key.
var statuses = map[quorum.Status]string{
	quorum.StatusFree: "free", quorum.StatusHeld: "held", quorum.StatusSplit: "split", quorum.StatusUnclear: "unclear",
}

// describe is what may be shown of a holding.
func describe(key string, h quorum.Holding) Lock {
	l := Lock{Key: key, State: statuses[h.Status], Votes: h.Shares, Fence: h.Fence, Waiters: h.Waiters}
	if h.Status == quorum.StatusHeld {
		l.Left = h.Left
	}
	if who, known := h.Holder.(*command.Identity); known {
		l.Since, l.Name = h.Since, who.Name
		if who.Addr != nil {
			l.Addr = who.Addr.String()
		}
	}
	return l
}
