package keepalive

import (
	"sync"
	"time"

	"redlock-proxy/quorum"
)

// Lock is a kept lock of a client. Reserve returns it before the client takes the lock, so that no
// client takes a lock that the proxy cannot keep.
type Lock struct {
	holder *Holder
	key    quorum.Key
	name   string // the key as the client names it
	token  string

	// The Keeper's mu guards the following fields.
	schedule
	at    time.Time // time of the next renewal or check; only valid while the lock is queued
	index int       // position in the queue, or notQueued
	// dropped is set when the Keeper has removed the lock.
	dropped bool
	// extra counts the lock until an extra renewal has ended; nil if none is requested.
	extra *sync.WaitGroup
	// announced is set while a push about the latest renewal is waiting to be written.
	announced bool
}

// lockSize is the memory of a kept lock in addition to its names and token, in bytes.
const lockSize = 512

func (l *Lock) size() int { return lockSize + len(l.key.Name) + len(l.name) + len(l.token) }

// Keep starts to keep the lock, which the masters have granted. It removes the previous kept lock
// of the key, if there is one. If that lock has a different token, Keep tells its client. If the
// token is the same, the new client takes over the lock. A previous lock with a later lease stays:
// Keep may run long after the client has got the reply.
func (l *Lock) Keep(t Term) {
	k := l.holder.keeper
	k.mu.Lock()
	if t.OfHolder {
		l.key = l.key.OfHolder(l.token)
	}
	previous := k.locks[l.key]
	isObsolete := previous != nil && t.LeaseStart.Before(previous.LeaseStart)
	isOther := previous != nil && previous.token != l.token && !isObsolete
	switch {
	case isObsolete:
	case isOther:
		k.dropLost(previous, NotHeld)
	case previous != nil:
		k.drop(previous)
	}
	if l.holder.stopped || isObsolete {
		l.Cancel()
	} else {
		l.schedule = newSchedule(t)
		k.keptCount.Add(1)
		k.locks[l.key] = l
		l.holder.locks[l] = true
		k.schedule(l, l.dueTime())
	}
	k.mu.Unlock()
	if isOther {
		previous.holder.announce(push{lock: previous, lost: true, reason: NotHeld})
	}
}

// Cancel ends the reservation of a lock that the proxy does not keep. On a nil Lock it does
// nothing.
func (l *Lock) Cancel() {
	if l != nil {
		l.holder.bytes.Add(-int64(l.size()))
	}
}
