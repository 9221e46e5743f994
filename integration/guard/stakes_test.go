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

// stake is a lock that its holder keeps while masters are killed.
type stake struct {
	key, token string
	round      int // the round in which it was taken
	thin       bool
	since      time.Time // when it was added
}

// stakeTTL is longer than all rounds: only its holder's release ends a stake.
const stakeTTL = 12 * time.Hour

// stakes holds the held locks, and their violations.
type stakes struct {
	mu       sync.Mutex
	standing []stake
	taken    int      // stakes that were ever granted
	thinned  int      // stakes held only by a bare majority
	doubles  []string // grants to a rival while the holder had the lock
	lost     []string // stakes that were lost when the holder released them
	unclear  int      // thin stakes with an unknown result: all masters that had them have lost their data in turn
}

// add adds a lock, which the rivals may try to take from now on.
func (s *stakes) add(one stake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.since = time.Now()
	s.standing = append(s.standing, one)
	s.taken++
	if one.thin {
		s.thinned++
	}
}

// pick returns one of the held locks, a different one in each turn.
func (s *stakes) pick(turn int) (stake, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.standing) == 0 {
		return stake{}, false
	}
	return s.standing[turn%len(s.standing)], true
}

// recordDouble handles a grant to a rival. If the holder has not begun to release the lock, it
// records a double grant, and the lock no longer counts as held.
func (s *stakes) recordDouble(one stake, rival string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.drop(one.key) {
		return false
	}
	s.doubles = append(s.doubles, fmt.Sprintf("%s of round %d (thin %v) was granted to %s as well, after %v",
		one.key, one.round, one.thin, rival, time.Since(one.since).Round(time.Millisecond)))
	return true
}

// doublesFrom returns the double grants from number n on.
func (s *stakes) doublesFrom(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubles[n:]
}

// withdraw removes a lock from the list, before its holder releases it. It returns false if a rival
// has been granted the lock.
func (s *stakes) withdraw(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop(key)
}

func (s *stakes) drop(key string) bool {
	for i, one := range s.standing {
		if one.key == key {
			s.standing = append(s.standing[:i:i], s.standing[i+1:]...)
			return true
		}
	}
	return false
}

// before returns the stakes of all rounds before round.
func (s *stakes) before(round int) []stake {
	s.mu.Lock()
	defer s.mu.Unlock()
	var old []stake
	for _, one := range s.standing {
		if one.round < round {
			old = append(old, one)
		}
	}
	return old
}

// recordLoss records a lock that its holder had lost.
func (s *stakes) recordLoss(one stake, reply any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failure, bad := reply.(redistest.RespError); one.thin && bad && kit.FirstWord(string(failure)) == "NOQUORUM" {
		s.unclear++
		return
	}
	s.lost = append(s.lost, fmt.Sprintf("UNLOCK %s of round %d (thin %v): %v", one.key, one.round, one.thin, reply))
}

// holder takes stakes and releases them.
type holder struct {
	fleet  *kit.Fleet
	client *redistest.Client
	stakes *stakes
}

// hold takes two locks, one of them without a TTL. If thin is set, only the victim and two other
// masters hold them; the remaining masters are unreachable.
func (h *holder) hold(t *testing.T, round, victim int, thin bool) {
	t.Helper()
	name := strconv.Itoa(round)
	if !thin {
		name += ":whole"
	}
	token := "holder-" + name
	for key, request := range map[string][]string{
		"lock:long:" + name:    {"LOCK", "lock:long:" + name, token, "PX", kit.Millis(stakeTTL)},
		"lock:endless:" + name: {"SET", "lock:endless:" + name, token, "NX"},
	} {
		one := stake{key: key, token: token, round: round, thin: thin}
		if thin {
			h.fleet.Without(t, []int{(victim + 3) % 5, (victim + 4) % 5}, func() { h.take(t, request) })
		} else {
			h.take(t, request)
			// A majority has replied. The messages to the other masters may be lost with their
			// links; the proxy repeats them.
			kit.Everywhere(t, h.fleet.Masters, func(master *redistest.Server) error {
				return kit.Stands(master, "0",
					key, token)
			})
		}
		h.stakes.add(one)
	}
}

// take repeats the request until it is granted: a proxy may notice late that a master is back.
func (h *holder) take(t *testing.T, request []string) {
	t.Helper()
	kit.Soon(t, func() error {
		switch reply := kit.Do(t, h.client, request...); reply.(type) {
		case int64, string:
			return nil
		default:
			return fmt.Errorf("%v: %v", request, reply)
		}
	})
}

// releaseStake releases the old locks. It records a loss if a lock was not held any more.
func (h *holder) releaseStake(t *testing.T, old []stake) {
	t.Helper()
	for _, one := range old {
		if !h.stakes.withdraw(one.key) {
			continue
		}
		if reply := kit.Do(t, h.client, "UNLOCK", one.key, one.token); reply != any(int64(1)) {
			h.stakes.recordLoss(one, reply)
		}
	}
}

// rival tries repeatedly to take the held locks, with LOCK and SET alternately.
type rival struct {
	name   string
	client *redistest.Client
	stakes *stakes
	over   *atomic.Bool

	tries    atomic.Int64
	failures map[string]int // by the first word of the error
}

// rivals has one rival for each proxy.
type rivals struct {
	all     []*rival
	over    atomic.Bool
	workers sync.WaitGroup
}

func startRivals(t *testing.T, proxies []*harness.Proxy, wanted *stakes) *rivals {
	t.Helper()
	r := &rivals{}
	for i, proxy := range proxies {
		one := &rival{name: fmt.Sprint("rival", i), client: kit.Connect(t, proxy), stakes: wanted, over: &r.over,
			failures: map[string]int{}}
		r.all = append(r.all, one)
		r.workers.Go(one.run)
	}
	return r
}

// stop stops the rivals. It may be called repeatedly.
func (r *rivals) stop() {
	r.over.Store(true)
	r.workers.Wait()
}

// wantTries waits until each rival has tried n more times, or there is no lock to try for.
func (r *rivals) wantTries(t *testing.T, n int64) {
	t.Helper()
	for _, one := range r.all {
		enough := one.tries.Load() + n
		kit.Soon(t, func() error {
			if _, standing := one.stakes.pick(0); standing && one.tries.Load() < enough {
				return fmt.Errorf("%s does not get to try", one.name)
			}
			return nil
		})
	}
}

// report logs the figures of the stopped rivals.
func (r *rivals) report(t *testing.T) {
	t.Helper()
	for _, one := range r.all {
		t.Logf("%s: %d tries, errors: %v", one.name, one.tries.Load(), one.failures)
	}
}

func (r *rival) run() {
	for turn := 0; !r.over.Load(); turn++ {
		if one, ok := r.stakes.pick(turn); ok {
			r.try(one, turn)
		}
		time.Sleep(time.Millisecond) // the pace of a client
	}
}

func (r *rival) try(one stake, turn int) {
	token := fmt.Sprint(r.name, "-", turn)
	request := []string{"LOCK", one.key, token, "PX", "60000"}
	if turn/2%2 == 1 {
		request = []string{"SET", one.key, token, "NX", "PX", "60000"}
	}
	r.tries.Add(1)
	reply, err := r.client.Do(request...)
	switch reply := reply.(type) {
	case redistest.RespError:
		r.failures[kit.FirstWord(string(reply))]++
	case int64, string:
		r.stakes.recordDouble(one, token)
		_, err = r.client.Do("UNLOCK", one.key, token)
	}
	if err != nil {
		r.failures[err.Error()]++
	}
}
