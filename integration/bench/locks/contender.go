package locks

import (
	"context"
	"fmt"
	"slices"
)

// The names of the contenders, as in the tables and in -contenders.
const (
	nameProxy     = "proxy"
	nameExtending = "extending"
	nameLockKeys  = "lockkeys"
	nameReentrant = "reentrant"
	nameTelling   = "telling"
	nameShared    = "shared"
	nameSlots     = "slots"
	nameReaders   = "readers"
	nameRedsync   = "redsync"
	nameDirect    = "direct"
)

func contenderNames() []string {
	return []string{nameProxy, nameExtending, nameLockKeys, nameReentrant, nameTelling, nameShared, nameSlots, nameReaders,
		nameRedsync, nameDirect}
}

// defaultContenders returns the contenders that run by default.
func defaultContenders() []string { return []string{nameProxy, nameRedsync, nameDirect} }

const ttlMillis = "10000"

// readers is the number of clients of the contender readers, which hold one lock together in every
// scenario.
const readers = 16

// waitWords returns the words with which LOCK waits for a lock that another client holds. It
// returns nil if each client of the scenario has a key of its own.
func waitWords(s scenario) []string {
	if !s.shared {
		return nil
	}
	return []string{"BLOCK", blockMillis}
}

// usesLockKeys reports whether a contender uses ordinary commands or scripts on the proxy's lock
// keys.
func usesLockKeys(name string) bool {
	return name == nameLockKeys || name == nameReentrant || name == nameTelling
}

// session is one client with one key. It holds the lock from a successful call of lock until
// unlock.
type session interface {
	lock(ctx context.Context) error
	unlock(ctx context.Context) error
}

// sessionGroup holds the sessions of a run and their shared connections.
type sessionGroup struct {
	sessions []session
	closers  []func() error
}

func (c *sessionGroup) close() {
	for _, closer := range c.closers {
		_ = closer()
	}
}

// openSessions opens the sessions of a contender, one for each client of the scenario. The
// contender readers has its own number of clients.
func openSessions(
	ctx context.Context, f *fleet, client clientKind, name string, s scenario, prefix string,
) (*sessionGroup, error) {
	c := &sessionGroup{}
	keys := clientKeys(s, prefix)
	var err error
	switch name {
	case nameProxy:
		err = c.addProxySessions(ctx, f.proxy.Addr(), client, keys, waitWords(s)...)
	case nameShared:
		err = c.addProxySessions(ctx, f.proxy.Addr(), client, keys, append(waitWords(s), "SHARED")...)
	case nameSlots:
		err = c.addProxySessions(ctx, f.proxy.Addr(), client, keys, append(waitWords(s), "SLOTS", "16")...)
	case nameReaders:
		err = c.addProxySessions(ctx, f.proxy.Addr(), client, slices.Repeat([]string{prefix + "read"}, readers), "SHARED")
	case nameExtending:
		err = c.addExtendSessions(ctx, f.proxy.Addr(), client, keys)
	case nameLockKeys:
		err = c.addDirectSessions(ctx, f.proxy.Addr(), client, keys)
	case nameReentrant:
		err = c.addReentrantSessions(ctx, f.proxy.Addr(), client, keys, reentrantUnlockScript)
	case nameTelling:
		err = c.addReentrantSessions(ctx, f.proxy.Addr(), client, keys, reentrantUnlockAndPublishScript)
	case nameRedsync:
		c.addRedsyncSessions(f.addrs, keys, s.shared)
	case nameDirect:
		err = c.addDirectSessions(ctx, f.addrs[0], client, keys)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// keyPrefix is the beginning of all keys.
const keyPrefix = "bench:"

// clientKeys returns the key of each client.
func clientKeys(s scenario, prefix string) []string {
	keys := make([]string, s.clients)
	for i := range keys {
		keys[i] = prefix + "shared"
		if !s.shared {
			keys[i] = fmt.Sprintf("%s%d", prefix, i)
		}
	}
	return keys
}
