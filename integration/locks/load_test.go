//go:build integration

package locks

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

// load is a group of clients that lock and unlock repeatedly until it is stopped. Each client has
// its own key, which is always free when the client requests it. If shared is set, a client also
// requests a common key in every second turn.
type load struct {
	stopping atomic.Bool
	pairs    atomic.Int64 // the locks that all clients were granted and released
	workers  sync.WaitGroup
	results  []result
}

// minPairs is the number of pairs without which a load does not tell much.
const minPairs = 100

// result holds the results of one client, or of all clients.
type result struct {
	lockPairs    int // number of locks that were granted and released; 0 in the result of one client
	nilReplies   int // number of nil replies for the shared key
	lateReplies  int // number of NOQUORUM because the machine stood still for longer than a round may take
	wrongReplies int // number of replies that must not happen
	example      string
	maxLockTime  time.Duration // duration of the slowest LOCK
}

// startLoad connects the clients and starts them.
func startLoad(t *testing.T, proxy *harness.Proxy, clients int, shared bool) *load {
	t.Helper()
	l := &load{results: make([]result, clients)}
	for i := range clients {
		w := &worker{name: strconv.Itoa(i), client: kit.Connect(t, proxy), shared: shared, result: &l.results[i], pairs: &l.pairs}
		l.workers.Go(func() {
			for turn := 0; !l.stopping.Load(); turn++ {
				w.runTurn(turn)
			}
		})
	}
	return l
}

// stop stops the clients, and adds up their results.
func (l *load) stop() result {
	for end := time.Now().Add(kit.WaitLimit); l.pairs.Load() < minPairs && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // polls
	}
	l.stopping.Store(true)
	l.workers.Wait()
	sum := result{lockPairs: int(l.pairs.Load())}
	for _, r := range l.results {
		sum.nilReplies += r.nilReplies
		sum.lateReplies += r.lateReplies
		sum.wrongReplies += r.wrongReplies
		sum.maxLockTime = max(sum.maxLockTime, r.maxLockTime)
		if r.example != "" {
			sum.example = r.example
		}
	}
	return sum
}

// wantFlawless fails the test unless there were many turns and no wrong reply.
func (r result) wantFlawless(t *testing.T) {
	t.Helper()
	t.Logf("%d pairs of LOCK and UNLOCK, %d times nil for the shared key, %d replies too late, slowest LOCK %v",
		r.lockPairs, r.nilReplies, r.lateReplies, r.maxLockTime)
	if r.wrongReplies > 0 {
		t.Errorf("%d wrong replies, such as %s", r.wrongReplies, r.example)
	}
	if r.lockPairs < minPairs {
		t.Errorf("only %d pairs: the test does not tell much", r.lockPairs)
	}
}

// worker is one client of a load.
type worker struct {
	name   string
	client *redistest.Client
	shared bool
	result *result
	pairs  *atomic.Int64 // of the load
}

// runTurn locks and unlocks once.
func (w *worker) runTurn(number int) {
	key, token := "own:"+w.name, w.name+"-"+strconv.Itoa(number)
	common := w.shared && number%2 == 1
	if common {
		key = "shared"
	}
	sent := time.Now()
	reply, err := w.client.Do("LOCK", key, token, "PX", "10000")
	w.result.maxLockTime = max(w.result.maxLockTime, time.Since(sent))
	switch validity, ok := reply.(int64); {
	case common && reply == nil && err == nil:
		w.result.nilReplies++
	case kit.IsLate(reply):
		w.result.lateReplies++
		w.unlock(key, token) // or the undo may still be running
	case !ok || validity <= 0:
		w.countWrong("LOCK "+key, reply, err)
	default:
		w.release(key, token)
	}
}

func (w *worker) release(key, token string) {
	reply, wasLate, err := w.unlock(key, token)
	if reply != any(int64(1)) && !(wasLate && reply == any(int64(0))) {
		w.countWrong("UNLOCK "+key, reply, err)
		return
	}
	w.pairs.Add(1)
}

// unlock repeats an UNLOCK until its reply is not late. It reports whether an earlier reply was
// late: then the last UNLOCK may find no lock.
func (w *worker) unlock(key, token string) (reply any, wasLate bool, err error) {
	for {
		reply, err = w.client.Do("UNLOCK", key, token)
		if err != nil || !kit.IsLate(reply) {
			return reply, wasLate, err
		}
		wasLate = true
		w.result.lateReplies++
	}
}

// countWrong counts a wrong reply.
func (w *worker) countWrong(command string, reply any, err error) {
	w.result.wrongReplies++
	w.result.example = fmt.Sprintf("%s: %#v, %v", command, reply, err)
	time.Sleep(time.Millisecond) // another error may follow immediately
}
