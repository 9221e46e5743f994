package register

import (
	"context"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// promise is what the masters promised when they accepted the last ballot of this proxy:
// the next one, which needs no round of its own then. It is good for as long as a round
// may take, because a master that restarts forgets it.
type promise struct {
	attempt          cell.Attempt
	ballot, accepted cell.Ballot
	value            cell.Value
	// start is when they were asked for it, passed how long it took until they answered.
	start  time.Time
	passed time.Duration
	// replies are those that count, as of a prepare.
	replies []Reply
}

// promises are those by key; each is used once.
type promises struct {
	mu    sync.Mutex
	byKey map[string]*promise
	swept sweeping
}

// promiseOf is what the replies to an accept promise.
func promiseOf(b ballot, p proposal, next cell.Ballot, replies []Reply) *promise {
	kept := &promise{
		attempt: p.base.attempt, ballot: next, accepted: b.number, value: p.value,
		replies: make([]Reply, len(replies)),
	}
	for i, r := range replies {
		if r.yes() {
			c := cell.Cell{Form: cell.Register, Attempt: kept.attempt, Promised: next, Accepted: b.number, Value: p.value}
			kept.replies[i] = Reply{State: Counted, Answer: cell.Answer{Did: true, Found: []cell.Found{{Cell: c}}, Now: r.Now}}
		}
	}
	return kept
}

func (p *promises) put(key string, one *promise) {
	if one.accepted == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	keep(&p.swept, p.byKey, key, one, one.start)
}

func (p *promise) over(now time.Time) bool { return now.Sub(p.start) > Limit }

func (p *promise) bytes() int { return len(p.value.Text) }

// take removes the promise of a key and returns it if it is still good.
func (p *promises) take(key string, now time.Time) *promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.byKey[key]
	delete(p.byKey, key)
	if one == nil || one.over(now) || !isDone(one.replies) {
		return nil
	}
	return one
}

// value is what the last ballot for a key put there, while its promise is good.
func (p *promises) value(key string, now time.Time) (text string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.byKey[key]
	if one == nil || !one.value.Present || one.over(now) {
		return "", false
	}
	return one.value.Text, true
}

// keptAsked are replies that were there before.
type keptAsked []Reply

func (k keptAsked) Replies() []Reply       { return k }
func (k keptAsked) Later(func(int, Reply)) {}
func (k keptAsked) Drop()                  {}
func (k keptAsked) Forget()                {}

// onPromise uses the promises that the last ballot of this proxy has left. A *splitError
// says to begin anew.
func (u *update) onPromise(ctx context.Context, kept *promise) (Outcome, error) {
	l := Look{Present: kept.value.Present, Value: kept.value.Text, Unknown: true, Longest: cell.NotReported, Version: version(kept.attempt, kept.value), incarnation: kept.attempt}
	d, err := u.Run(l)
	switch {
	case err != nil, d.Do == Leave, d.Do == Remove && !l.Present:
		return Outcome{}, &splitError{} // others may have changed it since
	}
	// No end is known here: each master that promised holds the value, and keeps its own.
	f := finding{standing: Held, attempt: kept.attempt, accepted: kept.accepted, value: kept.value, chosen: true}
	b := ballot{number: kept.ballot, start: kept.start, passed: kept.passed, asked: keptAsked(kept.replies)}
	return u.accept(ctx, b, u.replacing(b, f, d))
}
