package quorum

import (
	"context"
	"slices"
	"time"
)

// repaired is a lock that was given back to masters that had lost it.
type repaired struct {
	key   Key
	token string
	// masters are their numbers.
	masters []int
	due     time.Time
}

const (
	// maxRepaired bounds the repairs that wait to be looked at again.
	maxRepaired = 1024
	// repairSettles is how long after a repair no release that was under way then
	// can still be.
	repairSettles = roundLimit
)

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

// repair gives the key again to those of the masters that lost it, beside a majority
// that still holds it: never as a vote. It steps back behind a release that was asked
// for since. One that another proxy was asked for may be overtaken by it, so what was
// given back is looked at again.
func (r *round) repair(masters []int) {
	left := (r.change.ttl - time.Since(r.start)).Truncate(time.Millisecond)
	lost := slices.DeleteFunc(masters, func(i int) bool { return r.answers[i].asSaid().vote != voteAbsent })
	if left <= 0 || len(lost) == 0 {
		return
	}
	again := Acquire(r.change.key, r.change.token, left)
	for _, i := range lost {
		m := r.cluster.electors[i]
		m.lane(again.key).pushUnlessReleased(&op{change: again})
	}
	now := time.Now()
	for _, looks := range []struct {
		queue chan repaired
		after time.Duration
	}{{r.cluster.repairedNow, 0}, {r.cluster.repairedLong, repairSettles}} {
		select {
		case looks.queue <- repaired{r.change.key, r.change.token, lost, now.Add(looks.after)}:
		default: // its TTL ends it
		}
	}
}

// watchRepairs looks at each repair when that is due, until ctx ends.
func (c *Cluster) watchRepairs(ctx context.Context, queue <-chan repaired) {
	for {
		select {
		case <-ctx.Done():
			return
		case lock := <-queue:
			if sleep(ctx, nil, time.Until(lock.due)) {
				c.lookAtRepair(ctx, lock)
			}
		}
	}
}

// lookAtRepair takes a repair back where no majority can hold the lock without it: it
// was released meanwhile.
func (c *Cluster) lookAtRepair(ctx context.Context, lock repaired) {
	r := c.begin(read([]Key{lock.key}))
	r.waitForAll(ctx)
	if ctx.Err() != nil || r.mayStand(lock) {
		return
	}
	for _, i := range lock.masters {
		c.electors[i].cleanup(Release(lock.key, lock.token))
	}
}

// mayStand reports whether a majority may hold the lock on other masters than the
// repaired ones.
func (r *round) mayStand(lock repaired) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	may := 0
	for i, a := range r.answers[:r.tally.Masters] {
		said := a.asSaid()
		gone := len(said.entries) == 1 && said.entries[0].Value != lock.token
		if !gone && !slices.Contains(lock.masters, i) {
			may++
		}
	}
	return may >= Majority(r.tally.Masters)
}
