package quorum

import (
	"context"
	"slices"
	"time"
)

// A lock that stands on a majority is given back to a master that lost it in two
// steps: the master is offered it, which is no vote and no key of its own, and has it
// for a lock once a majority is seen to hold it later than any release can still be
// under way that the master had been asked for before the offer. Every script that
// takes the lock's value away takes the offer away, too. So a lock that is released
// while it is repaired does not come back, not even for a moment.

// offered is a lock that was offered to masters that had lost it.
type offered struct {
	key   Key
	token string
	// nonce tells this offer from others of the same lock.
	nonce string
	// masters are their numbers.
	masters []int
	due     time.Time
}

const (
	// maxOffered bounds the offers that wait for their time.
	maxOffered = 1024
	// offerSlack is how much longer an offer stands on a master than it needs to.
	offerSlack = 2 * time.Second
)

// settling is how long after an offer was sent it is taken up: the offer may take as
// long as a master may, and a release that was there before it as long as a round, or
// as a master may.
func settling(masterTimeout time.Duration) time.Duration {
	return masterTimeout + max(roundLimit, masterTimeout)
}

// repairAll looks at every master that answered before the round was won.
func (r *round) repairAll() {
	r.mu.Lock()
	var here []int
	for i, a := range r.answers {
		if a.here {
			here = append(here, i)
		}
	}
	r.mu.Unlock()
	r.repair(here)
}

// repair offers the lock to those of the masters that lost it.
func (r *round) repair(masters []int) {
	lost := slices.DeleteFunc(masters, func(i int) bool { return r.answers[i].asSaid().vote != voteAbsent })
	if len(lost) == 0 || r.change.ttl <= time.Since(r.start)+r.cluster.settling {
		return
	}
	o := offered{
		key: r.change.key, token: r.change.token, nonce: r.cluster.nonce(),
		masters: lost, due: time.Now().Add(r.cluster.settling),
	}
	select {
	case r.cluster.offers <- o:
	default: // its next extension tries again
		return
	}
	o.ask(r.cluster, offer(o.key, o.token, o.nonce, r.cluster.settling+offerSlack))
}

// ask has the masters that lost the lock make a change, as long as they are up.
func (o offered) ask(c *Cluster, change Change) {
	for _, i := range o.masters {
		_ = c.electors[i].lane(o.key).push(&op{change: change})
	}
}

// watchOffers ends each offer when that is due, until ctx ends.
func (c *Cluster) watchOffers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-c.offers:
			if sleep(ctx, nil, time.Until(o.due)) {
				c.mend(ctx, o)
			}
		}
	}
}

// mend has the masters take what they were offered if a majority holds it.
func (c *Cluster) mend(ctx context.Context, o offered) {
	held, err := c.Read(ctx, o.key)
	if err == nil && held.Held && held.Value == o.token {
		o.ask(c, mend(o.key, o.token, o.nonce, held.Left))
	}
}
