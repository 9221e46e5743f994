package register

import (
	"context"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// promise holds the promises for the next ballot that masters gave when they accepted this proxy's
// last ballot. The next ballot then needs no prepare. A promise expires after the limit of a round,
// because a master that restarts forgets it.
type promise struct {
	attempt          cell.Attempt
	ballot, accepted cell.Ballot
	value            cell.Value
	// start is the time at which the proxy asked the masters, and elapsed the time that they took
	// to reply.
	start   time.Time
	elapsed time.Duration
	// replies holds the replies that count, in the form of replies to a prepare.
	replies []Reply
}

// promises holds the promises by key. The proxy uses each promise once.
type promises struct {
	mu      sync.Mutex
	byKey   map[string]*promise
	pruning pruning
}

func newPromise(b ballot, p proposal, nextBallot cell.Ballot, replies []Reply) *promise {
	stored := &promise{
		attempt: p.base.attempt, ballot: nextBallot, accepted: b.number, value: p.value,
		replies: make([]Reply, len(replies)),
	}
	for i, r := range replies {
		if r.isYes() {
			c := cell.Cell{
				Form: cell.Register, Attempt: stored.attempt, Promised: nextBallot, Accepted: b.number, Value: p.value,
			}
			answer := cell.Answer{Applied: true, KeyStates: []cell.KeyState{{Cell: c}}, Now: r.Now}
			stored.replies[i] = Reply{State: Counted, Answer: answer}
		}
	}
	return stored
}

func (p *promises) put(key string, entry *promise) {
	if entry.accepted == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	putAndPrune(&p.pruning, p.byKey, key, entry, entry.start)
}

func (p *promise) isExpired(now time.Time) bool { return now.Sub(p.start) > Limit }

func (p *promise) bytes() int { return len(p.value.Text) }

// take removes the promise of a key, and returns it if it has not expired.
func (p *promises) take(key string, now time.Time) *promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry := p.byKey[key]
	delete(p.byKey, key)
	if entry == nil || entry.isExpired(now) || !isAppliedByMajority(entry.replies) {
		return nil
	}
	return entry
}

// value returns the value that the last ballot put, until its promise expires.
func (p *promises) value(key string, now time.Time) (text string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry := p.byKey[key]
	if entry == nil || !entry.value.Present || entry.isExpired(now) {
		return "", false
	}
	return entry.value.Text, true
}

type storedRound []Reply

func (k storedRound) Replies() []Reply              { return k }
func (k storedRound) OnLaterReply(func(int, Reply)) {}
func (k storedRound) Drop()                         {}
func (k storedRound) Release()                      {}

// usePromise makes the change without a prepare. A *splitError requests a new ballot.
func (u *update) usePromise(ctx context.Context, storedPromise *promise) (Outcome, error) {
	l := Snapshot{
		Present: storedPromise.value.Present, Value: storedPromise.value.Text, TimeLeftUnknown: true, LongestTimeLeft: cell.NotReported,
		Version: version(storedPromise.attempt, storedPromise.value), incarnation: storedPromise.attempt,
	}
	d, err := u.Run(l)
	switch {
	case err != nil, d.Action == NoChange, d.Action == Remove && !l.Present:
		return Outcome{}, &splitError{} // another proxy may have changed the key since
	}
	// The expiry is unknown. Each master that promised holds the value, and keeps its own expiry.
	t := tally{status: TallyHeld, attempt: storedPromise.attempt, acceptedBallot: storedPromise.accepted, value: storedPromise.value, chosen: true}
	b := ballot{number: storedPromise.ballot, start: storedPromise.start, elapsed: storedPromise.elapsed, prepareRound: storedRound(storedPromise.replies)}
	return u.accept(ctx, b, u.newProposal(b, t, d))
}
