package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"redlock-proxy/internal/pacing"

	"github.com/redis/go-redis/v9"
)

// ErrHeld means that another client held the lock during the whole wait.
var ErrHeld = errors.New("the lock is held by another client")

// errNoAnswer means that the proxy did not answer in time.
var errNoAnswer = errors.New("no answer in time")

// LostError means that the lock is no longer held.
type LostError struct {
	// Cause is the reason why the lock could not be extended in time. It is nil if the proxy
	// replied that the lock had expired or was released.
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
	Key string
	// TTL is the time for which the client requests the lock. Wait limits the wait while another
	// client holds the lock.
	TTL, Wait time.Duration
}

// Lock represents a granted lock. It is not safe for concurrent use.
type Lock struct {
	proxies *Proxies
	Request
	token string
	// leaseStart is the beginning of the current lease. The client may rely on the lease until
	// validUntil.
	leaseStart, validUntil time.Time
}

const (
	// lockReplyTimeout limits the time until the reply to a LOCK, in addition to the wait.
	lockReplyTimeout = 10 * time.Second
	// replyTimeout limits the time until the reply to other commands. After that, the caller
	// repeats the command or treats it as failed.
	replyTimeout = 2 * time.Second
)

// ConfigureClient makes go-redis send each command once, and wait as long as the context allows.
func ConfigureClient(opts *redis.Options) {
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.ReadTimeout, opts.WriteTimeout = -1, -1
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = 1
}

// Take requests a lock from the proxies, one after the other, until a proxy replies. The validity
// counts from the time at which Take sent the request, plus the time for which the request waited
// at the proxy.
//
// Errors: ErrHeld, the error of a proxy or of the connection to it, or the cause of ctx. After an
// error, this client holds no lock.
func Take(ctx context.Context, proxies *Proxies, r Request) (*Lock, error) {
	l := &Lock{proxies: proxies, Request: r, token: newToken()}
	// When the connection of this client closes, a proxy removes the client from the queue.
	stop := context.AfterFunc(ctx, proxies.Close)
	defer stop()
	deadline, sentAt := time.Now().Add(r.Wait), time.Time{}
	var reply []any
	var err error
	for range proxies.clients {
		sentAt = time.Now()
		reply, err = l.sendLock(ctx, max(deadline.Sub(sentAt), 0))
		// A proxy that cannot deliver its reply releases the lock again, so the next proxy can
		// grant the lock.
		if !isConnError(err) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, redis.Nil):
		return nil, ErrHeld
	case err != nil:
		return nil, err
	}
	fields, err := parseDurations(reply)
	if err != nil {
		return nil, err
	}
	l.leaseStart = sentAt.Add(fields["waited"])
	l.validUntil = l.leaseStart.Add(fields["validity"])
	return l, nil
}

// sendLock sends one LOCK.
func (l *Lock) sendLock(ctx context.Context, wait time.Duration) ([]any, error) {
	words := []any{"LOCK", l.Key, l.token, "PX", l.TTL.Milliseconds(), "AT"}
	if wait := wait.Milliseconds(); wait > 0 {
		words = append(words, "BLOCK", wait)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+lockReplyTimeout)
	defer cancel()
	return l.proxies.do(ctx, words...).Slice()
}

// parseDurations reads a map of milliseconds in its RESP2 form. It returns an error if the validity
// is missing.
func parseDurations(reply []any) (map[string]time.Duration, error) {
	fields := map[string]time.Duration{}
	for ; len(reply) > 1; reply = reply[2:] {
		name, isText := reply[0].(string)
		ms, isNumber := reply[1].(int64)
		if isText && isNumber {
			fields[name] = time.Duration(ms) * time.Millisecond
		}
	}
	if fields["validity"] <= 0 {
		return nil, errors.New("the reply has no validity; check that the server is a redlock-proxy")
	}
	return fields, nil
}

// newToken returns 128 random bits in hexadecimal.
func newToken() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// KeepExtended extends the lock whenever a third of its TTL has passed. It returns nil when ctx
// ends, or a *LostError when the lock is lost.
func (l *Lock) KeepExtended(ctx context.Context) error {
	var lastErr error
	for nextExtend := l.leaseStart.Add(l.TTL / 3); ; {
		if !sleepUntil(ctx, earlierTime(nextExtend, l.validUntil)) {
			return nil
		}
		if !time.Now().Before(l.validUntil) {
			return &LostError{lastErr}
		}
		err := l.extend(ctx)
		var lostErr *LostError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &lostErr):
			return err
		case err == nil:
			lastErr, nextExtend = nil, l.leaseStart.Add(l.TTL/3)
		default:
			lastErr, nextExtend = moreSpecificError(lastErr, err), time.Now().Add(l.retryDelay())
		}
	}
}

// moreSpecificError returns the error of the latest try. If the proxy did not answer the latest
// try, moreSpecificError returns the previous error, if any.
func moreSpecificError(previousErr, latestErr error) error {
	if previousErr != nil && errors.Is(latestErr, errNoAnswer) {
		return previousErr
	}
	return latestErr
}

// retryDelay returns the time to wait after a failed try to extend the lock.
func (l *Lock) retryDelay() time.Duration { return min(time.Second, l.TTL/30) }

// extend sends one EXTEND. It ignores a reply that comes after the lock's validity has expired.
func (l *Lock) extend(ctx context.Context) error {
	sentAt := time.Now()
	ctx, cancel := context.WithDeadline(ctx, earlierTime(sentAt.Add(min(replyTimeout, l.TTL/6)), l.validUntil))
	defer cancel()
	ms, err := l.proxies.do(ctx, "EXTEND", l.Key, l.token, "PX", l.TTL.Milliseconds()).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return &LostError{}
	case err != nil && ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case err != nil, !time.Now().Before(l.validUntil):
		return errNoAnswer
	}
	l.leaseStart, l.validUntil = sentAt, sentAt.Add(time.Duration(ms)*time.Millisecond)
	return nil
}

// Release releases the lock. It returns a *LostError if the lock was no longer held, or the error
// of the last proxy or of the connection to it.
func (l *Lock) Release(ctx context.Context) (err error) {
	for try := range l.proxies.clients {
		var n int64
		switch n, err = l.unlock(ctx); {
		case err == nil && n == 0 && try == 0:
			// On a later try, a proxy that did not answer may have released the lock.
			return &LostError{}
		case !isConnError(err):
			return err
		}
	}
	return err
}

func (l *Lock) unlock(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	return l.proxies.do(ctx, "UNLOCK", l.Key, l.token).Int64()
}

func earlierTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// sleepUntil waits until t. It reports whether t came before the end of ctx.
func sleepUntil(ctx context.Context, t time.Time) bool {
	return pacing.Sleep(ctx, time.Until(t)) == nil
}
