package locks

import (
	"errors"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/quorum"
)

// errNoConnection is the error for KEEPALIVE from a client without a connection that could end.
var errNoConnection = errors.New("KEEPALIVE needs a client connection")

// keptLocks holds the reservations for the keys of a command with KEEPALIVE; it is empty without
// KEEPALIVE.
type keptLocks []*keepalive.Lock

func (k keptLocks) cancel() {
	for _, lock := range k {
		lock.Cancel()
	}
}

// reserve makes room for kept locks before the client takes or extends them. It returns nil without
// KEEPALIVE.
func (l *LockCommands) reserve(c command.Call, parsed lockArgs, keys []quorum.Key, token string) (kept keptLocks, err error) {
	if !parsed.keepalive {
		return nil, nil
	}
	holder := keepalive.Of(c.Client)
	if holder == nil && c.Client.NewKeptLocks != nil {
		c.Client.KeptLocks = c.Client.NewKeptLocks()
		holder = keepalive.Of(c.Client)
	}
	if holder == nil {
		return nil, errNoConnection
	}
	for i, key := range keys {
		lock, err := holder.Reserve(key, parsed.keys[i], token)
		if err != nil {
			kept.cancel()
			return nil, err
		}
		kept = append(kept, lock)
	}
	if c.Client.ReserveMemory == nil {
		return kept, nil
	}
	if err := c.Client.ReserveMemory(); err != nil {
		kept.cancel()
		return nil, err
	}
	return kept, nil
}

// keepWhenDelivered starts to keep locks, each with its lease, once the client has got the reply.
// The proxy withdraws a lock whose reply is not delivered, and a renewal would prevent this.
func (a lockArgs) keepWhenDelivered(kept keptLocks, leases []quorum.GrantedLock, out *command.Reply) {
	if len(kept) == 0 {
		return
	}
	terms := make([]keepalive.Term, len(kept))
	for i, got := range leases {
		terms[i] = keepalive.Term{TTL: a.ttl, LeaseStart: got.LeaseStart, ValidUntil: time.Now().Add(got.Validity),
			MaxHold: a.maxHold, OfHolder: got.OfHolder}
	}
	out.OnDelivered(func() {
		for i, lock := range kept {
			lock.Keep(terms[i])
		}
	})
	out.OnUndelivered(kept.cancel)
}
