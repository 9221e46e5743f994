package quorum

import (
	"context"
	"time"
)

// turnLasts bounds a turn: longer than a round may take.
const turnLasts = roundLimit + 100*time.Millisecond

// Turn asks for the turn to change a key that others are likely to change at the same
// moment. Of changes sent to all masters at once each may win some and none a majority;
// they are taken back and tried again, and what others do meanwhile makes that a mess of
// values. So those who replace values, or try again, take turns: a key of one master, the
// same for all proxies, says whose it is. That decides nothing, the majority does. If the
// master is down, or another proxy reaches it and this one does not, it is as if there
// were no turns.
//
// ok is false where somebody else has the turn. end, which is never nil, ends it; else it
// ends after 700 ms.
func (c *Cluster) Turn(ctx context.Context, key Key) (end func(), ok bool) {
	m := c.turnMaster(key)
	turn := Acquire(Key{DB: key.DB, Name: turnPrefix + key.Name}, c.nonce(), turnLasts)
	end = func() { m.cleanup(Release(turn.key, turn.token)) }
	r := c.beginWith([]*master{m}, 1, turn)
	if _, err := r.wait(ctx); err != nil {
		end() // behind what may still be on its way
		return func() {}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if vote := r.answers[0].asSaid().vote; vote == voteYes || vote == voteFailed {
		return end, true
	}
	return func() {}, false
}

// turnMaster is the master that keeps the turns of a key: the first that is up, counted
// from one that depends on the key.
func (c *Cluster) turnMaster(key Key) *master {
	n := len(c.masters)
	first := int(hash(key) % uint32(n))
	for i := range n {
		if m := c.masters[(first+i)%n]; !m.isDown() {
			return m
		}
	}
	return c.masters[first]
}
