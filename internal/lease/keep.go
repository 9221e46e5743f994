package lease

import (
	"context"
	"errors"
	"time"
)

// Keep keeps the lock until ctx ends, and then returns nil. If the lock is lost, it returns a
// *LostError.
//
// The proxy renews the lock and reports each renewal, when about two thirds of the TTL are left.
// Keep sends EXTEND … KEEPALIVE when the connection has ended, or when a report is late. After a
// failed EXTEND, the next proxy gets the next EXTEND.
func (l *Lock) Keep(ctx context.Context) error {
	var extendErr error // of the EXTENDs since the last success
	var lastTry time.Time
	for ctx.Err() == nil {
		now, validUntil := time.Now(), l.earliestEnd()
		extendAt := now
		if l.proxies.conn != nil {
			extendAt = validUntil.Add(-l.TTL * 3 / 5)
		}
		extendAt = laterTime(extendAt, lastTry.Add(l.retryDelay()))
		var err error
		switch {
		case !now.Before(validUntil):
			return &LostError{extendErr}
		case now.Before(extendAt):
			err = l.listen(ctx, earlierTime(extendAt, validUntil))
		default:
			lastTry = now
			if err = l.extend(ctx, validUntil); err == nil {
				extendErr = nil
			}
		}
		var lostErr *LostError
		switch {
		case errors.As(err, &lostErr):
			return err
		case err != nil:
			extendErr = moreSpecificError(extendErr, err)
		}
	}
	return nil
}

// retryDelay returns the minimum time between two EXTENDs.
func (l *Lock) retryDelay() time.Duration { return min(time.Second, l.TTL/30) }

// moreSpecificError returns the error of the latest try. If the proxy did not answer the latest
// try, moreSpecificError returns the previous error, if any.
func moreSpecificError(previousErr, latestErr error) error {
	if previousErr != nil && errors.Is(latestErr, errNoAnswer) {
		return previousErr
	}
	return latestErr
}

// extend sends one EXTEND … KEEPALIVE, by which the proxy takes over the renewals. A grant that
// comes after validUntil counts as no answer.
func (l *Lock) extend(ctx context.Context, validUntil time.Time) error {
	deadline := earlierTime(time.Now().Add(min(replyTimeout, l.TTL/6)), validUntil)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	switch reply, err := l.request(ctx, "EXTEND"); {
	case err != nil:
		if !isConnError(err) {
			l.proxies.next() // do has already done so after an error of the connection
		}
		return err
	case !reply.granted:
		return &LostError{}
	case !time.Now().Before(validUntil):
		return errNoAnswer
	default:
		l.setValidUntil(reply.validUntil)
		return nil
	}
}

// listen processes the next push of the proxy, or waits until a time. It returns a *LostError if
// the proxy reports the loss of a key, or the error of the connection.
func (l *Lock) listen(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	push, err := l.proxies.awaitPush(ctx)
	if err != nil || len(push) != 4 || push[0] != any("lock") {
		return err
	}
	key, _ := push[2].(string)
	end, isOurs := l.validUntil[key]
	if !isOurs {
		return nil
	}
	switch push[1] {
	case any("kept"):
		ms, _ := push[3].(int64)
		l.validUntil[key] = renewedEnd(end, time.Now(), time.Duration(ms)*time.Millisecond, l.TTL)
	case any("lost"):
		reason, _ := push[3].(string)
		return lossByReport(reason)
	}
	return nil
}

// renewedEnd returns the time until which the client may rely on a key, after a push that arrives
// at now. The network may have delayed the push. But the proxy begins no lease earlier than a third
// of the TTL after the one before.
func renewedEnd(end, now time.Time, validity, ttl time.Duration) time.Time {
	return earlierTime(now.Add(validity), end.Add(ttl/renewalsPerTTL))
}

// lossByReport returns the error for the reason in a push.
func lossByReport(reason string) *LostError {
	if reason == "not_held" || reason == "forced" {
		return &LostError{}
	}
	return &LostError{errors.New(reason)}
}

// setValidUntil records a grant, which is for all keys.
func (l *Lock) setValidUntil(t time.Time) {
	l.validUntil = map[string]time.Time{}
	for _, key := range l.Keys {
		l.validUntil[key] = t
	}
}

// earliestEnd returns the time until which the client may rely on all keys.
func (l *Lock) earliestEnd() time.Time {
	earliest := l.validUntil[l.Keys[0]]
	for _, end := range l.validUntil {
		earliest = earlierTime(earliest, end)
	}
	return earliest
}

func earlierTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func laterTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
