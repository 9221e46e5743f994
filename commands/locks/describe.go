package locks

import (
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// Lock describes a lock without its token.
type Lock struct {
	// Key is empty if the reader knows the key.
	Key string
	// State is held, free, split or unclear.
	State string
	// RemainingTTL is the remaining time that a majority grants, or quorum.NoExpiry. It is set only
	// if State is held.
	RemainingTTL time.Duration
	// Votes holds the answers of the masters.
	Votes []quorum.MasterAnswer
	// Fence is at least the highest fence of a lock of the key so far; 0 if no lock had one.
	Fence int64
	// Waiters counts the clients of this proxy that wait for the lock.
	Waiters int
	// GrantTime is the time at which this proxy granted the lock; zero if this proxy did not grant
	// it. Addr and Name describe the client to which this proxy granted the lock.
	GrantTime  time.Time
	Addr, Name string
	// Kept is set if this proxy renews the lock for a client (KEEPALIVE).
	Kept bool
}

// statusNames holds the names of the states of a key.
var statusNames = map[quorum.Status]string{
	quorum.StatusFree: "free", quorum.StatusHeld: "held", quorum.StatusSplit: "split", quorum.StatusUnclear: "unclear",
}

// describe returns the public part of a holding. kept is set if this proxy renews the lock.
func describe(key string, h quorum.Holding, kept bool) Lock {
	l := Lock{Key: key, State: statusNames[h.Status], Votes: h.Masters, Fence: h.Fence, Waiters: h.Waiters, Kept: kept}
	if h.Status == quorum.StatusHeld {
		l.RemainingTTL = h.TimeLeft
	}
	if identity, isKnown := h.Holder.(*command.Identity); isKnown {
		l.GrantTime, l.Name = h.LeaseStart, identity.Name
		if identity.Addr != nil {
			l.Addr = identity.Addr.String()
		}
	}
	return l
}
