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

// reserve makes room for a kept lock before the client takes or extends it. It returns nil without
// KEEPALIVE.
func (l *LockCommands) reserve(c command.Call, parsed lockArgs, key quorum.Key, token string) (*keepalive.Lock, error) {
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
	kept, err := holder.Reserve(key, parsed.key, token)
	if err != nil || c.Client.ReserveMemory == nil {
		return kept, err
	}
	if err := c.Client.ReserveMemory(); err != nil {
		kept.Cancel()
		return nil, err
	}
	return kept, nil
}

// keepWhenDelivered starts to keep a lock once the client has got the reply. The proxy withdraws a
// lock whose reply is not delivered, and a renewal would prevent this.
func (a lockArgs) keepWhenDelivered(kept *keepalive.Lock, got quorum.GrantedLock, out *command.Reply) {
	if kept == nil {
		return
	}
	term := keepalive.Term{TTL: a.ttl, Since: got.Since, ValidUntil: time.Now().Add(got.Validity), MaxHold: a.maxHold, OfHolder: got.OfHolder}
	out.WhenDelivered(func() { kept.Keep(term) })
	out.IfUndelivered(kept.Cancel)
}
