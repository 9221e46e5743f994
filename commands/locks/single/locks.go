package single

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"redlock-proxy/commands/keyspace/contents"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/queue"
	"redlock-proxy/quorum/vote"
)

// held begins a script, which ends there with 0 unless the key holds the token. Whether the client may read the key is not to be taken for that.
const held = `local has = redis.pcall('get', KEYS[1])
if type(has) == 'table' and not string.find(has.err, 'WRONGTYPE', 1, true) then return has end
if has ~= ARGV[1] then return 0 end
`

// release and extend are scripts on a key, with the token. One without a TTL has more left than any.
const (
	release = held + `return redis.call('del', KEYS[1])`
	extend  = held + `local left = redis.call('pttl', KEYS[1])
if left >= 0 and left < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end
return 1`
)

// Lock takes a lock. A request that may wait is served first come, first served among those of this proxy; one that may not does
// not overtake them. While it waits it watches for the client to leave, but not while the upstream is asked, which does that itself.
//
// Errors: those of quorum.Locker.Lock that do not tell of masters, a [Refusal], *quorum.ElsewhereError, why the upstream could not be asked, or the
// cause of a watch that ended because the client left.
func (f *ForClient) Lock(_ context.Context, req quorum.LockRequest) (got quorum.Grant, err error) {
	switch {
	case req.Fence:
		return got, errFence
	case req.TTL < vote.Shortest:
		return got, quorum.ErrTooShort
	case req.Wait != 0:
		return f.wait(req)
	}
	if waits, _ := f.queues.Waits(req.Key); waits {
		return got, quorum.ErrHeld
	}
	return f.take(req)
}

// take tries once.
func (f *ForClient) take(req quorum.LockRequest) (got quorum.Grant, err error) {
	began := time.Now()
	token := textOf(req.Token)
	reply, err := f.put("SET", req.Key.Name, token, "NX", "PX", millis(req.TTL))
	switch {
	case err != nil:
		return got, err
	case resp.Begins(reply, "$-1"), resp.Begins(reply, "_"):
		return got, quorum.ErrHeld
	case !resp.Begins(reply, "+OK"):
		return got, unexpected("SET", reply)
	}
	if got, err = leased(req.TTL, began); err != nil {
		_, _ = f.put("EVAL", release, "1", req.Key.Name, token) // else it ends with its TTL
	}
	return got, err
}

// leased is the grant of a lease that was asked for at a time, unless nothing is left of it.
func leased(ttl time.Duration, began time.Time) (quorum.Grant, error) {
	elapsed := time.Since(began)
	validity := vote.Validity(ttl, elapsed)
	if validity < time.Millisecond {
		return quorum.Grant{}, fmt.Errorf("the upstream answered after %v: nothing is left of the TTL", elapsed.Round(time.Millisecond))
	}
	return quorum.Grant{Validity: validity, Since: began}, nil
}

// wait stands in the queue of the key, and tries when it is the head of it and the lock may be free.
func (f *ForClient) wait(req quorum.LockRequest) (got quorum.Grant, err error) {
	ctx, leave := context.WithCancelCause(f.ctx)
	defer leave(nil)
	f.leaveWhenMoved(ctx, leave)
	unwatch := f.watch(leave)
	defer func() { unwatch() }()
	var over <-chan time.Time
	if req.Wait > 0 {
		over = time.After(req.Wait)
	}
	switch f.queues.Await(ctx, queue.Waiting[quorum.Key]{
		Key: req.Key, Over: over, Rand: rand.Float64,
		Quorum: func() <-chan struct{} { return nil },
		Alarm:  func() queue.Alarm { return f.waker.Alarm(req.Key.DB, req.Key.Name) },
		Try: func() queue.Tried {
			unwatch()
			unwatch = func() {}
			if err = context.Cause(ctx); err != nil {
				return queue.Failed
			}
			switch got, err = f.take(req); {
			case err == nil:
				return queue.Taken
			case errors.Is(err, quorum.ErrHeld):
				unwatch = f.watch(leave)
				return queue.Refused
			}
			return queue.Failed
		},
	}) {
	case queue.Over:
		return got, quorum.ErrHeld
	case queue.Left:
		return got, context.Cause(ctx)
	}
	return got, err
}

// watch calls leave if the client leaves, until it is stopped.
func (f *ForClient) watch(leave context.CancelCauseFunc) (stop func()) {
	watched, end := f.client.WaitFor(f.ctx)
	ended := context.AfterFunc(watched, func() { leave(context.Cause(watched)) })
	return func() {
		ended()
		end()
	}
}

// leaveWhenMoved calls leave when the locks are not at the upstream any more, until ctx ends.
func (f *ForClient) leaveWhenMoved(ctx context.Context, leave context.CancelCauseFunc) {
	places := f.opts.Places
	if places == nil {
		return
	}
	f.tasks.Go(func() {
		for {
			turned := places.Turned()
			if at, _ := places.Placed(); at.Place != place.Upstream {
				leave(&quorum.ElsewhereError{Now: at})
				return
			}
			select {
			case <-turned:
			case <-ctx.Done():
				return
			}
		}
	})
}

// Unlock gives a lock back. Errors: quorum.ErrNotHeld, a [Refusal], or why the upstream could not be asked.
func (f *ForClient) Unlock(_ context.Context, key quorum.Key, token string) error {
	switch removed, err := f.number("EVAL", release, "1", key.Name, textOf(token)); {
	case err != nil:
		return err
	case removed == 0:
		return quorum.ErrNotHeld
	}
	f.queues.Released(key)
	return nil
}

// Withdraw leaves what Lock granted to a client that has gone to its TTL: over the proxy's own connections no lock key is changed.
func (*ForClient) Withdraw([]quorum.Key, quorum.Grant) {}

// Extend gives a held lock a new TTL, unless more is left. Errors: quorum.ErrNotHeld, quorum.ErrTooShort, a [Refusal], or why the upstream could not be asked.
func (f *ForClient) Extend(_ context.Context, key quorum.Key, token string, ttl time.Duration) (got quorum.Grant, err error) {
	if ttl < vote.Shortest {
		return got, quorum.ErrTooShort
	}
	began := time.Now()
	switch extended, err := f.number("EVAL", extend, "1", key.Name, textOf(token), millis(ttl)); {
	case err != nil:
		return got, err
	case extended == 0:
		return got, quorum.ErrNotHeld
	}
	return leased(ttl, began)
}

// Fence says that there is none.
func (f *ForClient) Fence(context.Context, quorum.Key) (int64, error) { return 0, errFence }

// textOf is a token as the client gave it.
func textOf(token string) string {
	if text, err := contents.Decode(token); err == nil {
		if text, is := text.(contents.Text); is {
			return string(text)
		}
	}
	return token
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
