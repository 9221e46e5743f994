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

// ErrHeld says that another held the lock for as long as it was waited for.
var ErrHeld = errors.New("the lock is held by another client")

// errNoAnswer says that the proxy did not answer while there was time for it.
var errNoAnswer = errors.New("no answer in time")

// LostError says that a lock is not held any more.
type LostError struct {
	// Cause is why it could not be extended; nil where it was held by then no more.
	Cause error
}

// Error says why.
func (e *LostError) Error() string {
	if e.Cause == nil {
		return "the lock was lost: it is not held any more"
	}
	return fmt.Sprintf("the lock was lost: it could not be extended in time: %v", e.Cause)
}

// Unwrap is the cause.
func (e *LostError) Unwrap() error { return e.Cause }

// Request asks for a lock.
type Request struct {
	Key string
	// TTL is how long it stands if nobody extends it; Wait how long to wait while another holds it.
	TTL, Wait time.Duration
}

// Lock is a lock that was granted. It is for one goroutine at a time.
type Lock struct {
	proxies *Proxies
	Request
	token string
	// since is when it was asked for last, and answered; until then it can be relied on.
	since, until time.Time
}

const (
	// answerTime is how long the proxy may take to answer a LOCK, beside what it waits.
	answerTime = 10 * time.Second
	// shortTime is how long it may take for anything else: then it is asked again, or given up.
	shortTime = 2 * time.Second
)

// Settings make go-redis ask once, and wait as long as the context says.
func Settings(opts *redis.Options) {
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.ReadTimeout, opts.WriteTimeout = -1, -1
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = 1
}

// Take asks proxies for a lock, one after the other until one answers. Its validity counts from
// before the request is sent.
//
// Errors: ErrHeld, that of a proxy or of the way to it, or the cause of ctx; nothing is held then.
func Take(ctx context.Context, proxies *Proxies, r Request) (*Lock, error) {
	l := &Lock{proxies: proxies, Request: r, token: newToken()}
	stop := context.AfterFunc(ctx, proxies.Close) // the proxy sees us leave the queue
	defer stop()
	over, sent := time.Now().Add(r.Wait), time.Time{}
	var answer []any
	var err error
	for range proxies.clients {
		sent = time.Now()
		answer, err = l.ask(ctx, max(over.Sub(sent), 0))
		if !isUnanswered(err) || ctx.Err() != nil { // else one that took the lock takes it back: it cannot deliver its reply
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
	told, err := numbers(answer)
	if err != nil {
		return nil, err
	}
	l.since = sent.Add(told["waited"])
	l.until = l.since.Add(told["validity"])
	return l, nil
}

// ask is one try to take it.
func (l *Lock) ask(ctx context.Context, wait time.Duration) ([]any, error) {
	words := []any{"LOCK", l.Key, l.token, "PX", l.TTL.Milliseconds(), "AT"}
	if wait := wait.Milliseconds(); wait > 0 {
		words = append(words, "BLOCK", wait)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+answerTime)
	defer cancel()
	return l.proxies.do(ctx, words...).Slice()
}

// numbers reads a map of milliseconds, as RESP2 has it.
func numbers(answer []any) (map[string]time.Duration, error) {
	told := map[string]time.Duration{}
	for ; len(answer) > 1; answer = answer[2:] {
		name, isText := answer[0].(string)
		ms, isNumber := answer[1].(int64)
		if isText && isNumber {
			told[name] = time.Duration(ms) * time.Millisecond
		}
	}
	if told["validity"] <= 0 {
		return nil, errors.New("the server grants no validity: is it a redlock-proxy?")
	}
	return told, nil
}

// newToken makes 128 random bits, in hexadecimal.
func newToken() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// Keep extends the lock, each time a third of its TTL is over, until ctx ends; or until it is lost,
// which the *LostError says.
func (l *Lock) Keep(ctx context.Context) error {
	var failed error
	for next := l.since.Add(l.TTL / 3); ; {
		if !sleepUntil(ctx, earlier(next, l.until)) {
			return nil
		}
		if !time.Now().Before(l.until) {
			return &LostError{failed}
		}
		err := l.extend(ctx)
		var lost *LostError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &lost):
			return err
		case err == nil:
			failed, next = nil, l.since.Add(l.TTL/3)
		default:
			failed, next = tellsMore(failed, err), time.Now().Add(l.pause())
		}
	}
}

// tellsMore is the error of the latest try, but where that was not answered and one before it was.
func tellsMore(before, latest error) error {
	if before != nil && errors.Is(latest, errNoAnswer) {
		return before
	}
	return latest
}

// pause is the time between two tries to extend it.
func (l *Lock) pause() time.Duration { return min(time.Second, l.TTL/30) }

// extend is one try. What is answered after the lock's time counts for nothing.
func (l *Lock) extend(ctx context.Context) error {
	sent := time.Now()
	ctx, cancel := context.WithDeadline(ctx, earlier(sent.Add(min(shortTime, l.TTL/6)), l.until))
	defer cancel()
	ms, err := l.proxies.do(ctx, "EXTEND", l.Key, l.token, "PX", l.TTL.Milliseconds()).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return &LostError{}
	case err != nil && ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case err != nil, !time.Now().Before(l.until):
		return errNoAnswer
	}
	l.since, l.until = sent, sent.Add(time.Duration(ms)*time.Millisecond)
	return nil
}

// Release gives the lock back. A *LostError says that it was not held any more.
func (l *Lock) Release(ctx context.Context) (err error) {
	for try := range l.proxies.clients {
		var n int64
		switch n, err = l.unlock(ctx); {
		case err == nil && n == 0 && try == 0: // else one that did not answer may have done it
			return &LostError{}
		case !isUnanswered(err):
			return err
		}
	}
	return err
}

func (l *Lock) unlock(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, shortTime)
	defer cancel()
	return l.proxies.do(ctx, "UNLOCK", l.Key, l.token).Int64()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// sleepUntil waits for a moment; false: ctx ended.
func sleepUntil(ctx context.Context, t time.Time) bool {
	return pacing.Sleep(ctx, time.Until(t)) == nil
}
