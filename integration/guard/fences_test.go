//go:build integration

package guard

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// fencesEnv sets the number of grants for which TestGuardFences waits; make fences uses
	// 100,000.
	fencesEnv     = "REDLOCK_FENCES"
	defaultFences = 3_000
	// fenceClients is the number of clients of two proxies. They use busyFenceKeys keys all the
	// time, and rareFenceKeys keys so rarely that masters restart between two uses of a key.
	fenceClients                 = 8
	busyFenceKeys, rareFenceKeys = 4, 400
	// minRestarts is the minimum number of masters that restart without their data.
	minRestarts = 6
	fenceLease  = 3 * time.Second
)

// highCounter is higher than any clock in microseconds. If the counters begin with highCounter,
// only the counters determine the order. The masters' time, which would hide the loss of a counter,
// is much lower.
const highCounter = int64(1) << 52

// setFenceCounters sets the fence counter of a key directly on masters.
func setFenceCounters(t *testing.T, masters []*redistest.Server, key string, to int64) {
	t.Helper()
	for _, master := range masters {
		kit.Must(t, kit.SendToMaster(master, "SET", "redlock-proxy:fence:"+key, strconv.FormatInt(to, 10)))
	}
}

// fenceOf returns the fence and the validity in the reply to a LOCK … FENCE. ok is false for other
// replies.
func fenceOf(reply any) (fence int64, validity time.Duration, ok bool) {
	fields, _ := reply.([]any)
	if len(fields) != 6 || fields[0] != any("validity") || fields[4] != any("fence") {
		return 0, 0, false
	}
	ms, _ := fields[1].(int64)
	fence, ok = fields[5].(int64)
	return fence, time.Duration(ms) * time.Millisecond, ok
}

// wantFence takes a lock with a fence, and returns the fence.
func wantFence(t *testing.T, client *redistest.Client, key, token string) int64 {
	t.Helper()
	reply := kit.Do(t, client, "LOCK", key, token, "PX", "10000", "FENCE")
	fence, _, ok := fenceOf(reply)
	if !ok {
		t.Fatalf("LOCK %s FENCE: got %v", key, reply)
	}
	return fence
}

// TestGuardFenceCopies restarts every master without its data, one after the other. Then a
// proxy that never saw the lock grants it with a higher fence.
func TestGuardFenceCopies(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 2)
	clientA, clientB := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	setFenceCounters(t, f.Masters, "k", highCounter)
	kit.Want(t, clientA, "OK", "SELECT", "3")
	otherFence := wantFence(t, clientA, "k", "t") // a different lock
	kit.Want(t, clientA, "OK", "SELECT", "0")
	firstFence := wantFence(t, clientA, "k", "t")
	if firstFence != highCounter+1 || otherFence >= firstFence {
		t.Errorf("fence %d, and %d in another database, after %d", firstFence, otherFence, highCounter)
	}
	kit.Want(t, clientA, int64(1), "UNLOCK", "k", "t")
	for i, master := range f.Masters {
		kit.Must(t, master.Restart())
		waitAllVoteAfterRestart(t, f, i)
	}
	kit.Want(t, clientB, firstFence, "FENCE", "k")
	if secondFence := wantFence(t, clientB, "k", "u"); secondFence != firstFence+1 {
		t.Errorf("fence %d after %d", secondFence, firstFence)
	}
	kit.Want(t, clientB, "OK", "SELECT", "3")
	kit.Want(t, clientB, otherFence, "FENCE", "k")
	kit.Want(t, clientB, nil, "FENCE", "other")
}

// TestGuardFenceLoss lets all masters lose their data at the same moment. Only their clocks, which
// have advanced, preserve the order of the fences.
func TestGuardFenceLoss(t *testing.T) {
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 1)
	client := kit.Connect(t, f.Proxies[0])
	last := int64(0)
	reply := kit.Do(t, client, "LOCK", "k", "t", "PX", "1000", "FENCE")
	if last, _, _ = fenceOf(reply); last == 0 {
		t.Fatalf("got %v", reply)
	}
	for _, master := range f.Masters {
		kit.Must(t, master.Kill())
	}
	for _, master := range f.Masters {
		kit.Must(t, master.Restart())
	}
	// The new proxy knows no earlier fence.
	f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters)))
	f.WantVoting(t, 5)
	kit.Want(t, client, nil, "FENCE", "k")
	if next := wantFence(t, kit.Connect(t, f.Proxies[1]), "k", "u"); next <= last {
		t.Errorf("fence %d after %d", next, last)
	}
}

// fenceRace is a group of clients that take locks and compare their fences.
type fenceRace struct {
	mu         sync.Mutex
	lastFences map[string]int64
	grants     int
	lateGrants int // grants whose lease had expired before they were compared
	replies    map[string]int
	violations []string
	stopping   chan struct{}
}

// TestGuardFences lets 8 clients of two proxies take locks. Meanwhile random masters are
// disconnected from one of the proxies, and random masters restart without their data. The counters
// are far ahead of the clocks, and masters lose their counters. Nevertheless every fence is higher
// than the fence of the previous lock.
func TestGuardFences(t *testing.T) {
	redistest.SkipShort(t)
	grantsWanted, seed := int(kit.NumberFrom(t, fencesEnv, defaultFences)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d grants (%s); seed %d (%s)", grantsWanted, fencesEnv, seed, kit.SeedEnv)
	f := kit.StartLinkedFleet(t, 2)
	f.WantVoting(t, 5)
	r := &fenceRace{lastFences: map[string]int64{}, replies: map[string]int{}, stopping: make(chan struct{})}
	for i := range busyFenceKeys + rareFenceKeys {
		key := fmt.Sprint("k", i)
		setFenceCounters(t, f.Masters, key, highCounter)
		r.lastFences[key] = highCounter
	}
	var clients sync.WaitGroup
	for i := range fenceClients {
		client, otherClient := kit.Connect(t, f.Proxies[i%2]), kit.Connect(t, f.Proxies[(i+1)%2])
		random := rand.New(rand.NewPCG(seed, uint64(i)+2))
		clients.Go(func() { r.run(fmt.Sprint(i), client, otherClient, random) })
	}
	stop := sync.OnceFunc(func() { close(r.stopping); clients.Wait() })
	t.Cleanup(stop)
	random := rand.New(rand.NewPCG(seed, 1))
	restarts, startedAt := 0, time.Now()
	for ; restarts < minRestarts || r.grantCount() < grantsWanted; restarts++ {
		victim := random.IntN(len(f.Masters))
		// While the first proxy cannot reach this master, its grants leave a counter that is too
		// low on the master.
		kit.Must(t, f.Links[0][victim].Cut())
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond) // the fault lasts
		kit.Must(t, f.Links[0][victim].Heal())
		victim = random.IntN(len(f.Masters))
		kit.Must(t, f.Masters[victim].Restart())
		waitAllVoteAfterRestart(t, f, victim)
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond) // no fault for a while
	}
	stop()
	t.Logf("%d grants in %v, %d of them too late to compare; %d masters restarted without their data; replies: %v",
		r.grants, time.Since(startedAt).Round(time.Second), r.lateGrants, restarts, r.replies)
	if len(r.violations) > 0 {
		t.Errorf("%d FENCES ARE NOT HIGHER THAN THE LAST:\n%s", len(r.violations),
			strings.Join(r.violations[:min(20, len(r.violations))], "\n"))
	}
}

// numberPattern matches the numbers and addresses in replies. So replies that differ only in
// numbers and addresses count as one kind.
var numberPattern = regexp.MustCompile(`[0-9][0-9.:]*`)

func (r *fenceRace) grantCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.grants
}

// run takes locks until the race ends. Usually it releases them through its own proxy, sometimes
// through the other proxy, which uses a ballot, or not at all.
func (r *fenceRace) run(name string, client, otherClient *redistest.Client, random *rand.Rand) {
	for n := 0; ; n++ {
		select {
		case <-r.stopping:
			return
		default:
		}
		key, token := fmt.Sprint("k", random.IntN(busyFenceKeys)), fmt.Sprint(name, "-", n)
		if random.IntN(4) == 0 {
			key = fmt.Sprint("k", busyFenceKeys+random.IntN(rareFenceKeys))
		}
		sent := time.Now()
		reply, err := client.Do("LOCK", key, token, "PX", kit.Millis(fenceLease), "FENCE", "BLOCK", "500")
		fence, validity, ok := fenceOf(reply)
		r.compare(key, token, fence, ok, time.Until(sent.Add(validity)), reply, err)
		switch choice := random.IntN(400); {
		case !ok:
			time.Sleep(time.Millisecond) // the pace of a client
		case choice == 0: // the lock expires
		case choice < 40:
			_, _ = otherClient.Do("UNLOCK", key, token)
		default:
			_, _ = client.Do("UNLOCK", key, token)
		}
	}
}

// compare records a reply while the lock is held, so that no other client compares the same key.
// remaining is the remaining lease.
func (r *fenceRace) compare(key, token string, fence int64, ok bool, remaining time.Duration, reply any, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := "a fence"
	switch failure, isError := reply.(redistest.RespError); {
	case err != nil:
		kind = err.Error()
	case isError:
		kind = numberPattern.ReplaceAllString(string(failure), "#")
	case !ok:
		kind = fmt.Sprint(reply)
	}
	r.replies[kind]++
	switch {
	case !ok:
	case remaining < 100*time.Millisecond:
		r.lateGrants++
	default:
		r.grants++
		if fence <= r.lastFences[key] {
			r.violations = append(r.violations, fmt.Sprintf("%s for %s: %d after %d", key, token, fence, r.lastFences[key]))
		}
		r.lastFences[key] = fence
	}
}
