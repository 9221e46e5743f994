//go:build integration

package masters

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// loadKeys is the number of locks that all clients share.
	loadKeys = 48
	// loaders is the number of clients.
	loaders = 32
	// loadLease is longer than a change, so that a lost lock would be granted again.
	loadLease = 1500 * time.Millisecond
)

// load is a group of clients that take locks at proxies, keep them for up to their lease, and
// release most at another proxy. A client relies on a lock by its own clock, from before the
// request.
type load struct {
	histories [loadKeys]*holdings.History
	// key returns the key of a lock.
	key     func(number int) string
	stopped atomic.Bool
	workers sync.WaitGroup

	mu      sync.Mutex
	replies map[string]int
}

// startLoad starts clients that use the proxies in turn.
func startLoad(proxies []*harness.Proxy, seed uint64) *load {
	return startLoadOf(proxies, seed, func(number int) string { return "lock:" + strconv.Itoa(number) })
}

func startLoadOf(proxies []*harness.Proxy, seed uint64, key func(number int) string) *load {
	l := &load{key: key, replies: map[string]int{}}
	began := time.Now()
	for i := range l.histories {
		l.histories[i] = holdings.HistorySince(began)
	}
	for i := range loaders {
		random := rand.New(rand.NewPCG(seed, uint64(i)+1))
		l.workers.Go(func() {
			clients := make([]*redistest.Client, len(proxies))
			for turn := 0; !l.stopped.Load(); turn++ {
				l.turn(clients, proxies, random, fmt.Sprint(i, "-", turn))
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond)))) // the pace of a client
			}
		})
	}
	return l
}

// ask sends a command to a proxy, over a new connection if the last one failed.
func ask(clients []*redistest.Client, proxies []*harness.Proxy, p int, words ...string) (any, error) {
	if clients[p] == nil {
		client, err := redistest.Dial(proxies[p].Addr(), 2*time.Second)
		if err != nil {
			return nil, err
		}
		clients[p] = client
	}
	reply, err := clients[p].Do(words...)
	if err != nil {
		_ = clients[p].Close()
		clients[p] = nil
	}
	return reply, err
}

func (l *load) turn(clients []*redistest.Client, proxies []*harness.Proxy, random *rand.Rand, token string) {
	number, p := random.IntN(loadKeys), random.IntN(len(proxies))
	key, history := l.key(number), l.histories[number]
	words := []string{"LOCK", key, token, "PX", kit.Millis(loadLease)}
	if random.IntN(3) == 0 {
		words = append(words, "BLOCK", "500")
	}
	asked := history.Now()
	reply, err := ask(clients, proxies, p, words...)
	received := history.Now()
	validity, granted := reply.(int64)
	l.note("LOCK", reply, err)
	if !granted {
		return
	}
	until := asked + time.Duration(validity)*time.Millisecond
	keeps := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
	if random.IntN(4) == 0 {
		keeps = loadLease // no client releases the lock
	}
	time.Sleep(keeps) // the client holds the lock
	if one := holdings.Relied(token, received, until, history.Now()); one.From < one.To {
		history.Add(one)
	}
	if keeps < loadLease {
		reply, err := ask(clients, proxies, random.IntN(len(proxies)), "UNLOCK", key, token)
		l.note("UNLOCK", reply, err)
	}
}

func (l *load) note(command string, reply any, err error) {
	kind := fmt.Sprintf("%s %v", command, reply)
	if _, granted := reply.(int64); granted && command == "LOCK" {
		kind = "LOCK granted"
	}
	if failure, bad := reply.(redistest.RespError); bad {
		kind = command + " " + kit.FirstWord(string(failure))
	}
	if err != nil {
		kind = command + " failed"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replies[kind]++
}

// stop lets all clients finish their turns, and returns the number of held locks, and the overlaps.
func (l *load) stop(t *testing.T) (grants int, found []holdings.Overlap) {
	t.Helper()
	l.stopped.Store(true)
	l.workers.Wait()
	for _, history := range l.histories {
		grants += history.Count()
		found = append(found, history.Overlaps()...)
	}
	t.Logf("%d grants, %d of them double; replies: %v", grants, len(found), l.replies)
	return grants, found
}

// want stops the load, and fails the test unless there are enough grants, and no double ones.
func (l *load) want(t *testing.T) {
	t.Helper()
	grants, found := l.stop(t)
	if grants < 100 {
		t.Errorf("%d grants only", grants)
	}
	for i, overlap := range found {
		if i < 10 {
			t.Error("DOUBLE GRANT: ", overlap)
		}
	}
}

// rounds returns all for each round that REDLOCK_MASTERS_ROUNDS requests, but at least few.
func rounds(few, all int) int {
	n, _ := strconv.Atoi(os.Getenv("REDLOCK_MASTERS_ROUNDS"))
	return max(n*all, few)
}

// loadWays leads from three masters to five and back, one change at a time, with replacements.
var loadWays = [][]int{
	{0, 1, 5}, {0, 1, 5, 3}, {0, 1, 5, 3, 4}, {0, 1, 3, 4}, {0, 3, 4}, {2, 3, 4}, {2, 1, 4}, {2, 1, 0},
}

// TestChangesUnderLoad checks that no lock is granted twice while the masters change from three to
// five and back, one at a time, under load. Meanwhile a master is killed, stopped, or restarts
// without its data, and proxies are stopped.
func TestChangesUnderLoad(t *testing.T) {
	redistest.SkipShort(t)
	changeUnderLoad(t, startRig(t, 3, 3, 6), func(number int) string { return "lock:" + strconv.Itoa(number) })
}

// TestChangesUnderLoadOfTags repeats TestChangesUnderLoad with locks in groups of four with a
// common tag; one of the four is the tag itself.
func TestChangesUnderLoadOfTags(t *testing.T) {
	redistest.SkipShort(t)
	changeUnderLoad(t, start(t, &rig{t: t, tags: true}, 3, 3, 6), func(number int) string {
		tag := fmt.Sprint("lock:", number/4)
		if number%4 == 0 {
			return tag
		}
		return fmt.Sprintf("lock:%d:{%s}", number%4, tag)
	})
}

func changeUnderLoad(t *testing.T, r *rig, key func(number int) string) {
	t.Helper()
	seed := kit.NumberFrom(t, "REDLOCK_MASTERS_SEED", 1)
	random := rand.New(rand.NewPCG(seed, 0))
	l := startLoadOf(r.proxies, seed, key)
	is := first(3)
	for n := range rounds(5, len(loadWays)) {
		masters := loadWays[n%len(loadWays)]
		began := time.Now()
		r.cutOff(random, is, masters)
		r.disturbed(random, masters)
		t.Logf("%v after %v", masters, time.Since(began).Round(time.Millisecond))
		time.Sleep(200 * time.Millisecond) // clients keep running
		is = masters
	}
	l.want(t)
	for line := range strings.SplitSeq(r.proxies[0].Log(), "\n") {
		if _, told, found := strings.Cut(line, `msg="the masters were changed" `); found {
			t.Log("the first proxy: a majority votes: ", told)
		}
	}
}

// cutOff makes a master that stays unreachable for all proxies for a short time, so that only the
// other masters hold some locks.
func (r *rig) cutOff(random *rand.Rand, is, next []int) {
	r.t.Helper()
	var stay []int
	for _, i := range is {
		if slices.Contains(next, i) {
			stay = append(stay, i)
		}
	}
	link := r.links[stay[random.IntN(len(stay))]]
	kit.Must(r.t, link.Refuse())
	time.Sleep(300 * time.Millisecond) // the fault lasts
	kit.Must(r.t, link.Heal())
	kit.Soon(r.t, func() error { return r.votes(r.proxies[0], is) })
}

// disturbed changes the masters during a fault, which ends before all masters have to vote.
func (r *rig) disturbed(random *rand.Rand, masters []int) {
	r.t.Helper()
	r.nameAll(masters...)
	one := r.servers[masters[random.IntN(len(masters))]]
	other := r.proxies[1+random.IntN(len(r.proxies)-1)]
	after := time.Duration(random.Int64N(int64(30 * time.Millisecond)))
	var heal func() error
	fault := random.IntN(5)
	begin := func() (err error) {
		time.Sleep(after) // the next step may come after any delay
		switch fault {
		case 0:
			err, heal = one.Pause(), one.Continue
		case 1:
			err, heal = one.Kill(), one.Restart
		case 2:
			err, heal = other.Signal(stop), func() error { return other.Signal(goOn) }
		case 3:
			err, heal = other.Signal(stop), func() error {
				time.Sleep(2 * time.Second) // the fault lasts
				return other.Signal(goOn)
			}
		default:
			heal = func() error { return nil }
		}
		return err
	}
	done := make(chan error, 1)
	go func() { done <- begin() }()
	reply := r.tryReload(0)
	kit.Must(r.t, <-done)
	time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // the fault lasts
	kit.Must(r.t, heal())
	r.t.Logf("fault %d: %.60v", fault, reply)
	last := time.Now()
	kit.Soon(r.t, func() error {
		err := r.votes(r.proxies[0], masters)
		if err != nil && time.Since(last) > time.Second { // the fault caused a refusal
			last = time.Now()
			r.t.Log(r.tryReload(0))
		}
		return err
	})
	r.wantVoting(masters...)
}

// tryReload lets a proxy reload its file, and returns the reply.
func (r *rig) tryReload(proxy int) string {
	client, err := redistest.Dial(r.proxies[proxy].Addr(), 30*time.Second)
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	reply, err := client.Do("PROXY", "RELOAD")
	return fmt.Sprint(reply, err)
}
