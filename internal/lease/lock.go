package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// ErrHeld means that another client held the lock during the whole wait.
var ErrHeld = errors.New("the lock is held by another client")

// LostError means that the lock is no longer held.
type LostError struct {
	// Cause is the reason why the lock could not be extended in time. It is nil if a proxy replied
	// or reported that this client no longer holds the lock.
	Cause error
}

// Error returns a text that includes the cause.
func (e *LostError) Error() string {
	if e.Cause == nil {
		return "the lock was lost: it expired or was released"
	}
	return fmt.Sprintf("the lock was lost: it could not be extended in time: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Cause }

// Request asks for a lock.
type Request struct {
	// Keys holds one key, or several keys that the client takes all or none.
	Keys []string
	// TTL is the time for which the lock stays held when its proxy no longer renews it. Wait limits
	// the wait while another client holds the lock.
	TTL, Wait time.Duration
	// Options holds further options of LOCK, such as SHARED or FENCE.
	Options []any
}

// command returns a command on all keys. name is the name of the command for one key.
func (r Request) command(name, token string, options ...any) []any {
	words := []any{name}
	if len(r.Keys) > 1 {
		words = []any{"M" + name, len(r.Keys)}
	}
	for _, key := range r.Keys {
		words = append(words, key)
	}
	return append(append(words, token), options...)
}

// Lock represents a granted lock, which a proxy renews. It is not safe for concurrent use.
type Lock struct {
	proxies *Proxies
	Request
	// Token is unique to the lock. Fence is 0 if the lock has no fence.
	Token string
	Fence int64
	// validUntil holds for each key the time until which the client may rely on it.
	validUntil map[string]time.Time
}

const (
	// lockReplyTimeout limits the time until the reply to a LOCK, in addition to the wait.
	lockReplyTimeout = 10 * time.Second
	// replyTimeout limits the time until the reply to other commands. After that, the caller
	// repeats the command or treats it as failed.
	replyTimeout = 2 * time.Second
	// renewalsPerTTL is the number of times that a proxy renews a lock within its TTL.
	renewalsPerTTL = 3
)

// Take requests a lock from the proxies, one after the other, until a proxy replies. An error reply
// counts as a reply.
//
// Errors: ErrHeld, the error of a proxy or of the connection to it, or the cause of ctx. After an
// error, this client holds no lock.
func Take(ctx context.Context, proxies *Proxies, r Request) (*Lock, error) {
	l := &Lock{proxies: proxies, Request: r, Token: newToken()}
	var reply grant
	var err error
	deadline := time.Now().Add(r.Wait)
	for range proxies.list {
		reply, err = l.sendLock(ctx, max(time.Until(deadline), 0))
		// A proxy that cannot deliver its reply releases the lock again, so the next proxy can
		// grant the lock.
		if !isConnError(err) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case !reply.granted:
		return nil, ErrHeld
	}
	l.Fence = reply.fence
	l.setValidUntil(reply.validUntil)
	return l, nil
}

// sendLock sends one LOCK. When ctx ends, it closes the connection, and the proxy removes the
// client from the queue.
func (l *Lock) sendLock(ctx context.Context, wait time.Duration) (grant, error) {
	options := l.Options
	if ms := wait.Milliseconds(); ms > 0 {
		options = append(options[:len(options):len(options)], "BLOCK", ms)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+lockReplyTimeout)
	defer cancel()
	return l.request(ctx, "LOCK", options...)
}

// grant is the reply to a LOCK or EXTEND.
type grant struct {
	// granted is false if another client holds the lock.
	granted bool
	fence   int64
	// validUntil is the time until which the client may rely on the lock unless a later message
	// changes it.
	validUntil time.Time
}

// request sends a LOCK or EXTEND that makes the proxy renew the lock. The validity counts from the
// time of sending, plus the time for which the command waited at the proxy.
func (l *Lock) request(ctx context.Context, name string, options ...any) (grant, error) {
	sentAt := time.Now()
	words := l.command(name, l.Token, "PX", l.TTL.Milliseconds(), "KEEPALIVE", "AT")
	reply, err := l.proxies.do(ctx, append(words, options...)...)
	if err != nil || reply == nil {
		return grant{}, err
	}
	fields := parseNumbers(reply)
	if fields["validity"] <= 0 {
		return grant{}, errUnexpectedReply
	}
	held := time.Duration(fields["waited"]+fields["validity"]) * time.Millisecond
	return grant{granted: true, fence: fields["fence"], validUntil: sentAt.Add(held)}, nil
}

// parseNumbers returns the numbers of a map by their names.
func parseNumbers(reply any) map[string]int64 {
	numbers := map[string]int64{}
	pairs, _ := reply.([]any)
	for ; len(pairs) > 1; pairs = pairs[2:] {
		name, isText := pairs[0].(string)
		n, isNumber := pairs[1].(int64)
		if isText && isNumber {
			numbers[name] = n
		}
	}
	return numbers
}

// newToken returns 128 random bits in hexadecimal.
func newToken() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// Release releases the lock. It returns a *LostError if the lock was no longer held, or the error
// of the last proxy or of the connection to it.
func (l *Lock) Release(ctx context.Context) (err error) {
	for try := range l.proxies.list {
		var released int64
		switch released, err = l.unlock(ctx); {
		case err == nil && released < int64(len(l.Keys)) && try == 0:
			// On a later try, a proxy that did not answer may have released the lock.
			return &LostError{}
		case !isConnError(err):
			return err
		}
	}
	return err
}

// unlock sends one UNLOCK, and returns the number of released keys.
func (l *Lock) unlock(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	reply, err := l.proxies.do(ctx, l.command("UNLOCK", l.Token)...)
	released, _ := reply.(int64)
	return released, err
}
