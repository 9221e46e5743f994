package locks

import (
	"errors"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/quorum"
)

// errNoConnection refuses KEEPALIVE to a client without a connection that could end.
var errNoConnection = errors.New("KEEPALIVE needs a client connection")

// keptLocks holds the reservations for the keys of a command with KEEPALIVE; it is empty without.
type keptLocks []*keepalive.Lock

func (k keptLocks) cancel() {
	for _, lock := range k {
		lock.Cancel()
	}
}

// reserve makes room for locks that the client wants to have kept, before they are taken or
// extended.
func (l *LockCommands) reserve(c command.Call, parsed lockArgs, keys []quorum.Key, token string) (kept keptLocks, err error) {
	if !parsed.keepalive {
		return nil, nil
	}
	holder := keepalive.Of(c.Client)
	if holder == nil && c.Client.Keep != nil {
		c.Client.Kept = c.Client.Keep()
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

// keepWhenDelivered starts to keep locks once the client has got the reply. A lock whose reply is
// not delivered is withdrawn, and a renewal would prevent that.
func (a lockArgs) keepWhenDelivered(kept keptLocks, got quorum.GrantedLock, out *command.Reply) {
	if len(kept) == 0 {
		return
	}
	term := keepalive.Term{TTL: a.ttl, Since: got.Since, ValidUntil: time.Now().Add(got.Validity), MaxHold: a.maxHold}
	out.WhenDelivered(func() {
		for _, lock := range kept {
			lock.Keep(term)
		}
	})
	out.IfUndelivered(kept.cancel)
}
