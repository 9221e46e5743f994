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
	// Slots is the number of clients that may hold the lock, quorum.Unlimited, or 0 for an
	// exclusive lock. If Slots is not 0, Holders holds the holders, and GrantTime, Addr, Name and
	// Kept are not set.
	Slots   int
	Holders []Holder
}

// Holder describes one of several holders of a lock. The fields have the meanings of those of Lock.
type Holder struct {
	RemainingTTL time.Duration
	GrantTime    time.Time
	Addr, Name   string
	Kept         bool
}

// statusNames holds the names of the states of a key.
var statusNames = map[quorum.Status]string{
	quorum.StatusFree: "free", quorum.StatusHeld: "held", quorum.StatusSplit: "split", quorum.StatusUnclear: "unclear",
}

// describe returns the public part of a holding. key is the key as clients name it, or empty.
func (h *OperatorCommands) describe(key string, onMasters quorum.Key, held quorum.Holding) Lock {
	l := Lock{
		Key: key, State: statusNames[held.Status], Votes: held.Masters, Fence: held.Fence, Waiters: held.Waiters,
		Kept: h.opts.Keeper.IsKept(onMasters), Slots: held.Slots,
	}
	if held.Status == quorum.StatusHeld {
		l.RemainingTTL = held.TimeLeft
	}
	l.GrantTime, l.Addr, l.Name = describeClient(held.Holder, held.LeaseStart)
	for _, one := range held.Holders {
		described := Holder{RemainingTTL: one.TimeLeft, Kept: h.opts.Keeper.IsKept(onMasters.OfHolder(one.Token))}
		described.GrantTime, described.Addr, described.Name = describeClient(one.Client, one.LeaseStart)
		l.Holders = append(l.Holders, described)
	}
	return l
}

// describeClient returns the time at which this proxy granted a lock, and the address and name of
// the client. The results are zero if this proxy did not grant the lock.
func describeClient(client any, granted time.Time) (since time.Time, addr, name string) {
	identity, isKnown := client.(*command.Identity)
	if !isKnown {
		return time.Time{}, "", ""
	}
	if identity.Addr != nil {
		addr = identity.Addr.String()
	}
	return granted, addr, identity.Name
}
