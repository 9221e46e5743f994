package commands

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"redlock-proxy/quorum"
)

// Locks is the locker behind the commands: a *quorum.Locker, whose methods tell
// the errors.
type Locks interface {
	Lock(ctx context.Context, req quorum.LockRequest) (validity time.Duration, err error)
	Unlock(ctx context.Context, key quorum.Key, token string) error
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (validity time.Duration, err error)
}

// ErrShuttingDown is the cause of a context that ends because the proxy stops.
var ErrShuttingDown = errors.New("the proxy is shutting down")

// cmdLock is LOCK key token|* PX ms|EX s [BLOCK ms].
func (t *Table) cmdLock(ctx context.Context, c *Client, args [][]byte, out *Reply) {
	g := grammar{name: "lock", block: true, maxTTL: t.opts.MaxTTL}
	parsed, err := g.parse(args)
	if err != nil {
		out.Error(err.Error())
		return
	}
	made := parsed.token == generate
	if made {
		parsed.token = t.newToken()
	}
	if parsed.wait != 0 {
		watched, stop := c.watch(ctx)
		defer stop()
		ctx = watched
	}
	key := t.key(c, parsed.key)
	validity, err := t.opts.Locks.Lock(ctx, quorum.LockRequest{
		Key: key, Token: parsed.token, TTL: parsed.ttl, Wait: parsed.wait,
	})
	switch {
	case errors.Is(err, quorum.ErrHeld):
		out.Null()
		return
	case err != nil:
		out.Error(errorText(err))
		return
	}
	out.IfUndelivered(func() { _ = t.opts.Locks.Unlock(context.WithoutCancel(ctx), key, parsed.token) })
	if made {
		out.Map(2)
		out.Bulk("validity")
		out.Int(validity.Milliseconds())
		out.Bulk("token")
		out.Bulk(parsed.token)
		return
	}
	out.Int(validity.Milliseconds())
}

// cmdUnlock is UNLOCK key token.
func (t *Table) cmdUnlock(ctx context.Context, c *Client, args [][]byte, out *Reply) {
	err := t.opts.Locks.Unlock(ctx, t.key(c, string(args[1])), string(args[2]))
	switch {
	case err == nil:
		out.Int(1)
	case errors.Is(err, quorum.ErrNotHeld):
		out.Int(0)
	default:
		out.Error(errorText(err))
	}
}

// cmdExtend is EXTEND key token PX ms|EX s.
func (t *Table) cmdExtend(ctx context.Context, c *Client, args [][]byte, out *Reply) {
	g := grammar{name: "extend", maxTTL: t.opts.MaxTTL}
	parsed, err := g.parse(args)
	if err != nil {
		out.Error(err.Error())
		return
	}
	validity, err := t.opts.Locks.Extend(ctx, t.key(c, parsed.key), parsed.token, parsed.ttl)
	switch {
	case err == nil:
		out.Int(validity.Milliseconds())
	case errors.Is(err, quorum.ErrNotHeld):
		out.Null()
	default:
		out.Error(errorText(err))
	}
}

// key is where a lock stands on the masters.
func (t *Table) key(c *Client, name string) quorum.Key {
	return quorum.Key{DB: c.DB, Name: t.opts.KeyPrefix + name}
}

// newToken makes 128 random bits, in hexadecimal.
func (t *Table) newToken() string {
	var bits [16]byte
	t.opts.Random(bits[:])
	return hex.EncodeToString(bits[:])
}

// errorText is the reply for an error: a code that no client library retries by
// itself, then what happened.
func errorText(err error) string {
	var none *quorum.NoQuorumError
	if errors.As(err, &none) {
		return "NOQUORUM " + none.Error()
	}
	return "ERR " + err.Error()
}
