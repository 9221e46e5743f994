package commands

import (
	"context"
	"errors"

	"redlock-proxy/commands/register"
	"redlock-proxy/quorum"
)

// acquire is SET key value NX with or without a TTL, or SETNX: a lock as LOCK takes
// it, which is the cheapest way and keeps to the order of those who wait for it. It
// reports false for anything else.
func (t *Table) acquire(ctx context.Context, c *Client, words []string, out *Reply) bool {
	if !onlyAcquires(words) {
		return false
	}
	key := words[1]
	s := guessAbsent([]string{key}).space(t.opts.Now())
	reply, err := s.Do(words)
	edits := s.Edits()
	switch {
	case err != nil || s.Touched() && len(edits) == 0: // an expiry that is over already
		return false
	case len(edits) == 0:
		out.value(reply)
		return true
	}
	if why := t.forbids(edits); why != "" {
		out.Error(why)
		return true
	}
	t.lockFor(ctx, c, edits[0], reply, out)
	return true
}

// lockFor takes a lock and answers granted, or what the same command says if the
// key is held.
func (t *Table) lockFor(ctx context.Context, c *Client, e register.Edit, granted register.Reply, out *Reply) {
	place, ttl := t.place(c.DB, e.Key), e.Now.Left
	if ttl < 0 {
		ttl = quorum.Endless
	}
	_, err := t.opts.Locks.Lock(ctx, quorum.LockRequest{Key: place, Token: e.Now.Value, TTL: ttl})
	switch {
	case errors.Is(err, quorum.ErrHeld) && granted.Kind == register.Int:
		out.Int(0)
		return
	case errors.Is(err, quorum.ErrHeld):
		out.Null()
		return
	case err != nil:
		out.Error(errorText(err))
		return
	}
	if ttl < 0 {
		t.warnEndless(e.Key)
	}
	c.remember(c.DB, []register.Edit{e})
	out.IfUndelivered(func() { _ = t.opts.Locks.Unlock(context.WithoutCancel(ctx), place, e.Now.Value) })
	out.value(granted)
}

// onlyAcquires reports whether a command takes a lock and does nothing else: it has
// NX and at most a time beside it. Whether that is right is not looked at.
func onlyAcquires(words []string) bool {
	if len(words) < 3 {
		return false
	}
	switch lower([]byte(words[0])) {
	case "setnx":
		return len(words) == 3
	case "set":
	default:
		return false
	}
	nx := false
	for options := words[3:]; len(options) > 0; {
		taken := 1
		switch lower([]byte(options[0])) {
		case "nx":
			nx = true
		case "px", "ex", "pxat", "exat":
			taken = 2
		default:
			return false
		}
		options = options[min(taken, len(options)):]
	}
	return nx
}
