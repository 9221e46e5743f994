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
	// loadClients is the number of clients.
	loadClients = 32
	// loadLease is longer than a change, so that a lost lock would be granted again during its
	// lease.
	loadLease = 1500 * time.Millisecond
)

// load is a group of clients that take locks at proxies, and keep them for up to their lease. They
// release most locks at a random proxy. A client counts the validity by its own clock, from the
// time before the request.
type load struct {
	histories [loadKeys]*holdings.History
	// key returns the key of a lock.
	key      func(number int) string
	stopping atomic.Bool
	workers  sync.WaitGroup

	mu      sync.Mutex
	replies map[string]int
}

// startLoad starts clients that use the proxies in turn.
func startLoad(proxies []*harness.Proxy, seed uint64) *load {
	return startLoadWithKeys(proxies, seed, func(number int) string { return "lock:" + strconv.Itoa(number) })
}

func startLoadWithKeys(proxies []*harness.Proxy, seed uint64, key func(number int) string) *load {
	l := &load{key: key, replies: map[string]int{}}
	startedAt := time.Now()
	for i := range l.histories {
		l.histories[i] = holdings.HistorySince(startedAt)
	}
	for i := range loadClients {
		random := rand.New(rand.NewPCG(seed, uint64(i)+1))
		l.workers.Go(func() {
			clients := make([]*redistest.Client, len(proxies))
			for turn := 0; !l.stopping.Load(); turn++ {
				l.runTurn(clients, proxies, random, fmt.Sprint(i, "-", turn))
				// The sleep sets the pace of a client.
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
			}
		})
	}
	return l
}

// doAt sends a command to a proxy, over a new connection if the last one failed.
func doAt(clients []*redistest.Client, proxies []*harness.Proxy, p int, words ...string) (any, error) {
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

func (l *load) runTurn(clients []*redistest.Client, proxies []*harness.Proxy, random *rand.Rand, token string) {
	number, p := random.IntN(loadKeys), random.IntN(len(proxies))
	key, history := l.key(number), l.histories[number]
	words := []string{"LOCK", key, token, "PX", kit.Millis(loadLease)}
	if random.IntN(3) == 0 {
		words = append(words, "BLOCK", "500")
	}
	sent := history.Now()
	reply, err := doAt(clients, proxies, p, words...)
	received := history.Now()
	validity, granted := reply.(int64)
	l.countReply("LOCK", reply, err)
	if !granted {
		return
	}
	until := sent + time.Duration(validity)*time.Millisecond
	holdTime := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
	if random.IntN(4) == 0 {
		holdTime = loadLease // the client lets the lease expire
	}
	time.Sleep(holdTime) // the client holds the lock
	if holding := holdings.NewHolding(token, received, until, history.Now()); holding.From < holding.To {
		history.Add(holding)
	}
	if holdTime < loadLease {
		reply, err := doAt(clients, proxies, random.IntN(len(proxies)), "UNLOCK", key, token)
		l.countReply("UNLOCK", reply, err)
	}
}

func (l *load) countReply(command string, reply any, err error) {
	kind := fmt.Sprintf("%s %v", command, reply)
	if _, granted := reply.(int64); granted && command == "LOCK" {
		kind = "LOCK granted"
	}
	if failure, isError := reply.(redistest.RespError); isError {
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
func (l *load) stop(t *testing.T) (grants int, overlaps []holdings.Overlap) {
	t.Helper()
	l.stopping.Store(true)
	l.workers.Wait()
	for _, history := range l.histories {
		grants += history.Count()
		overlaps = append(overlaps, history.Overlaps()...)
	}
	t.Logf("%d grants, %d of them double; replies: %v", grants, len(overlaps), l.replies)
	return grants, overlaps
}

// wantNoDoubleGrants stops the load, and fails the test unless there are enough grants, and no
// double grants.
func (l *load) wantNoDoubleGrants(t *testing.T) {
	t.Helper()
	grants, overlaps := l.stop(t)
	if grants < 100 {
		t.Errorf("%d grants only", grants)
	}
	for i, overlap := range overlaps {
		if i < 10 {
			t.Error("DOUBLE GRANT: ", overlap)
		}
	}
}

// rounds returns factor times REDLOCK_MASTERS_ROUNDS, but at least minimum.
func rounds(minimum, factor int) int {
	n, _ := strconv.Atoi(os.Getenv("REDLOCK_MASTERS_ROUNDS"))
	return max(n*factor, minimum)
}

// changeSequence lists changes from three masters to five and back, one master at a time, with
// replacements.
var changeSequence = [][]int{
	{0, 1, 5}, {0, 1, 5, 3}, {0, 1, 5, 3, 4}, {0, 1, 3, 4}, {0, 3, 4}, {2, 3, 4}, {2, 1, 4}, {2, 1, 0},
}

// TestChangesUnderLoad checks that no lock is granted twice during changes of the masters under
// load. The number of masters changes to five and back to three, one master at a time. Meanwhile a
// master is killed, stopped, or restarts without its data, and proxies are stopped.
func TestChangesUnderLoad(t *testing.T) {
	redistest.SkipShort(t)
	changeUnderLoad(t, startRig(t, 3, 3, 6), func(number int) string { return "lock:" + strconv.Itoa(number) })
}

// TestChangesUnderLoadOfTags repeats TestChangesUnderLoad with locks in groups of four with a
// common tag; one of the four is the tag itself.
func TestChangesUnderLoadOfTags(t *testing.T) {
	redistest.SkipShort(t)
	changeUnderLoad(t, startServers(t, &rig{t: t, usesTags: true}, 3, 3, 6), func(number int) string {
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
	l := startLoadWithKeys(r.proxies, seed, key)
	current := firstN(3)
	for n := range rounds(5, len(changeSequence)) {
		masters := changeSequence[n%len(changeSequence)]
		startedAt := time.Now()
		r.cutOffMaster(random, current, masters)
		r.changeDuringFault(random, masters)
		t.Logf("%v after %v", masters, time.Since(startedAt).Round(time.Millisecond))
		time.Sleep(200 * time.Millisecond) // clients keep running
		current = masters
	}
	l.wantNoDoubleGrants(t)
	for line := range strings.SplitSeq(r.proxies[0].Log(), "\n") {
		if _, attributes, found := strings.Cut(line, `msg="the masters were changed" `); found {
			t.Log("the first proxy: a majority votes: ", attributes)
		}
	}
}

// cutOffMaster makes one of the masters that are not removed unreachable for a short time. Then
// only the other masters hold some locks.
func (r *rig) cutOffMaster(random *rand.Rand, currentMasters, nextMasters []int) {
	r.t.Helper()
	var remainingMasters []int
	for _, i := range currentMasters {
		if slices.Contains(nextMasters, i) {
			remainingMasters = append(remainingMasters, i)
		}
	}
	link := r.links[remainingMasters[random.IntN(len(remainingMasters))]]
	kit.Must(r.t, link.Refuse())
	time.Sleep(300 * time.Millisecond) // the fault lasts
	kit.Must(r.t, link.Heal())
	kit.Eventually(r.t, func() error { return r.checkVoting(r.proxies[0], currentMasters) })
}

// changeDuringFault changes the masters during a fault, which ends before all masters have to vote.
func (r *rig) changeDuringFault(random *rand.Rand, masters []int) {
	r.t.Helper()
	r.writeAllMasters(masters...)
	faultyMaster := r.servers[masters[random.IntN(len(masters))]]
	faultyProxy := r.proxies[1+random.IntN(len(r.proxies)-1)]
	delay := time.Duration(random.Int64N(int64(30 * time.Millisecond)))
	var heal func() error
	fault := random.IntN(5)
	begin := func() (err error) {
		time.Sleep(delay) // the next step may come after any delay
		switch fault {
		case 0:
			err, heal = faultyMaster.Pause(), faultyMaster.Continue
		case 1:
			err, heal = faultyMaster.Kill(), faultyMaster.Restart
		case 2:
			err, heal = faultyProxy.Signal(stopSignal), func() error { return faultyProxy.Signal(continueSignal) }
		case 3:
			err, heal = faultyProxy.Signal(stopSignal), func() error {
				time.Sleep(2 * time.Second) // the fault lasts
				return faultyProxy.Signal(continueSignal)
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
	lastReload := time.Now()
	kit.Eventually(r.t, func() error {
		err := r.checkVoting(r.proxies[0], masters)
		if err != nil && time.Since(lastReload) > time.Second { // the fault caused a refusal
			lastReload = time.Now()
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
