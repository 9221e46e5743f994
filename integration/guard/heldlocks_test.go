//go:build integration

package guard

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// heldLock is a lock that its holder keeps while masters are killed.
type heldLock struct {
	key, token     string
	round          int // the round in which it was taken
	onBareMajority bool
	addedAt        time.Time // when it was added
}

// heldLockTTL is longer than all rounds, so that no lock expires.
const heldLockTTL = 12 * time.Hour

// heldLocks records the locks that are held, and their violations.
type heldLocks struct {
	mu             sync.Mutex
	locks          []heldLock
	grants         int      // locks that were ever granted
	bareMajorities int      // locks on a bare majority
	doubleGrants   []string // grants to a rival while the holder had the lock
	losses         []string // locks that were lost when the holder released them
	// unknownResults is the number of locks on a bare majority whose UNLOCK got NOQUORUM: masters
	// of the bare majority have lost their data in turn.
	unknownResults int
}

// add adds a lock, which the rivals may try to take from now on.
func (s *heldLocks) add(lock heldLock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock.addedAt = time.Now()
	s.locks = append(s.locks, lock)
	s.grants++
	if lock.onBareMajority {
		s.bareMajorities++
	}
}

// pick returns one of the held locks, a different lock in each turn.
func (s *heldLocks) pick(turn int) (heldLock, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.locks) == 0 {
		return heldLock{}, false
	}
	return s.locks[turn%len(s.locks)], true
}

// recordDoubleGrant handles a grant to a rival. Unless the holder has begun to release the lock,
// recordDoubleGrant records a double grant and returns true, and the lock no longer counts as held.
func (s *heldLocks) recordDoubleGrant(lock heldLock, rival string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.remove(lock.key) {
		return false
	}
	s.doubleGrants = append(s.doubleGrants, fmt.Sprintf("%s of round %d (thin %v) was granted to %s as well, after %v",
		lock.key, lock.round, lock.onBareMajority, rival, time.Since(lock.addedAt).Round(time.Millisecond)))
	return true
}

// doubleGrantsFrom returns the double grants from number n on.
func (s *heldLocks) doubleGrantsFrom(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubleGrants[n:]
}

// withdraw removes a lock from the list, before its holder releases it. It returns false if a rival
// was granted the lock.
func (s *heldLocks) withdraw(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(key)
}

func (s *heldLocks) remove(key string) bool {
	for i, lock := range s.locks {
		if lock.key == key {
			s.locks = append(s.locks[:i:i], s.locks[i+1:]...)
			return true
		}
	}
	return false
}

// locksHeldBefore returns the held locks that were taken before a round.
func (s *heldLocks) locksHeldBefore(round int) []heldLock {
	s.mu.Lock()
	defer s.mu.Unlock()
	var locks []heldLock
	for _, lock := range s.locks {
		if lock.round < round {
			locks = append(locks, lock)
		}
	}
	return locks
}

// recordLoss records the reply to an UNLOCK that did not release its lock. After NOQUORUM for a
// lock on a bare majority, it counts the result as unknown. Otherwise the lock was lost.
func (s *heldLocks) recordLoss(lock heldLock, reply any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failure, isError := reply.(redistest.RespError); lock.onBareMajority && isError && kit.FirstWord(string(failure)) == "NOQUORUM" {
		s.unknownResults++
		return
	}
	s.losses = append(s.losses, fmt.Sprintf("UNLOCK %s of round %d (thin %v): %v", lock.key, lock.round, lock.onBareMajority, reply))
}

// holder takes locks and releases them.
type holder struct {
	fleet  *kit.Fleet
	client *redistest.Client
	locks  *heldLocks
}

// hold takes two locks, one of them without a TTL. If onBareMajority is set, only the victim and
// two other masters hold them; the remaining masters are unreachable.
func (h *holder) hold(t *testing.T, round, victim int, onBareMajority bool) {
	t.Helper()
	name := strconv.Itoa(round)
	if !onBareMajority {
		name += ":whole"
	}
	token := "holder-" + name
	for key, request := range map[string][]string{
		"lock:long:" + name:    {"LOCK", "lock:long:" + name, token, "PX", kit.Millis(heldLockTTL)},
		"lock:endless:" + name: {"SET", "lock:endless:" + name, token, "NX"},
	} {
		lock := heldLock{key: key, token: token, round: round, onBareMajority: onBareMajority}
		if onBareMajority {
			h.fleet.RunWhileUnreachable(t, []int{(victim + 3) % 5, (victim + 4) % 5}, func() { h.take(t, request) })
		} else {
			h.take(t, request)
			// A majority has replied. Messages to the other masters may have been lost when their
			// links were cut; the proxy repeats these messages.
			kit.EachMaster(t, h.fleet.Masters, func(master *redistest.Server) error {
				return kit.CheckToken(master, "0",
					key, token)
			})
		}
		h.locks.add(lock)
	}
}

// take repeats the request until it is granted, because a proxy may notice late that a master is
// back.
func (h *holder) take(t *testing.T, request []string) {
	t.Helper()
	kit.Eventually(t, func() error {
		switch reply := kit.Do(t, h.client, request...); reply.(type) {
		case int64, string:
			return nil
		default:
			return fmt.Errorf("%v: %v", request, reply)
		}
	})
}

// releaseAll releases the given locks. It records a loss if a lock was not held any more.
func (h *holder) releaseAll(t *testing.T, locks []heldLock) {
	t.Helper()
	for _, lock := range locks {
		if !h.locks.withdraw(lock.key) {
			continue
		}
		if reply := kit.Do(t, h.client, "UNLOCK", lock.key, lock.token); reply != any(int64(1)) {
			h.locks.recordLoss(lock, reply)
		}
	}
}

// rival tries repeatedly to take the held locks, in turn with LOCK and with SET.
type rival struct {
	name     string
	client   *redistest.Client
	locks    *heldLocks
	stopping *atomic.Bool

	tries    atomic.Int64
	failures map[string]int // by the first word of the error
}

// rivals has one rival for each proxy.
type rivals struct {
	rivals   []*rival
	stopping atomic.Bool
	workers  sync.WaitGroup
}

func startRivals(t *testing.T, proxies []*harness.Proxy, locks *heldLocks) *rivals {
	t.Helper()
	r := &rivals{}
	for i, proxy := range proxies {
		rival := &rival{name: fmt.Sprint("rival", i), client: kit.Connect(t, proxy), locks: locks, stopping: &r.stopping,
			failures: map[string]int{}}
		r.rivals = append(r.rivals, rival)
		r.workers.Go(rival.run)
	}
	return r
}

// stop stops the rivals. It may be called repeatedly.
func (r *rivals) stop() {
	r.stopping.Store(true)
	r.workers.Wait()
}

// wantTries waits until each rival has tried n more times, or there is no lock to try for.
func (r *rivals) wantTries(t *testing.T, n int64) {
	t.Helper()
	for _, rival := range r.rivals {
		wantedTries := rival.tries.Load() + n
		kit.Eventually(t, func() error {
			if _, isHeld := rival.locks.pick(0); isHeld && rival.tries.Load() < wantedTries {
				return fmt.Errorf("%s does not get to try", rival.name)
			}
			return nil
		})
	}
}

// report logs the figures of the stopped rivals.
func (r *rivals) report(t *testing.T) {
	t.Helper()
	for _, rival := range r.rivals {
		t.Logf("%s: %d tries, errors: %v", rival.name, rival.tries.Load(), rival.failures)
	}
}

func (r *rival) run() {
	for turn := 0; !r.stopping.Load(); turn++ {
		if lock, ok := r.locks.pick(turn); ok {
			r.try(lock, turn)
		}
		time.Sleep(time.Millisecond) // the pace of a client
	}
}

func (r *rival) try(lock heldLock, turn int) {
	token := fmt.Sprint(r.name, "-", turn)
	request := []string{"LOCK", lock.key, token, "PX", "60000"}
	if turn/2%2 == 1 {
		request = []string{"SET", lock.key, token, "NX", "PX", "60000"}
	}
	r.tries.Add(1)
	reply, err := r.client.Do(request...)
	switch reply := reply.(type) {
	case redistest.RespError:
		r.failures[kit.FirstWord(string(reply))]++
	case int64, string:
		r.locks.recordDoubleGrant(lock, token)
		_, err = r.client.Do("UNLOCK", lock.key, token)
	}
	if err != nil {
		r.failures[err.Error()]++
	}
}
