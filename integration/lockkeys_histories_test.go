//go:build integration

package integration

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"redlock-proxy/integration/harness"
)

const (
	// opsEnv sets how many commands TestHistories sends.
	opsEnv = "REDLOCK_OPS"
	// defaultOps take some seconds on two busy cores.
	defaultOps = 4000

	crowdSize = 10
)

// verdict is what the check of all histories came to.
type verdict struct {
	keys, undecided, violations int
	excused                     excuses
	examples                    []*lockKey
}

// judge checks the history of every key, some of them at once.
func (c *crowd) judge() verdict {
	findings := make([]finding, len(c.ring.all))
	var next atomic.Int64
	var checkers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		checkers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(findings); i = next.Add(1) - 1 {
				findings[i] = checkLockKey(c.ring.all[i].records)
			}
		})
	}
	checkers.Wait()
	v := verdict{keys: len(findings)}
	for i, key := range c.ring.all {
		got := findings[i]
		v.excused = v.excused.plus(got.excused)
		switch got.result {
		case porcupine.Unknown:
			v.undecided++
		case porcupine.Illegal:
			v.violations++
			v.examples = append(v.examples, key)
		}
	}
	return v
}

func (v verdict) String() string {
	return fmt.Sprintf("%d histories, %d violations, %d undecided; nil of SET NX without a holder: %d with another write in flight (a split vote), "+
		"%d with leftovers, %d whose value was seen; removals: %d were told 0 and had their effect, %d were told 1 of what was gone",
		v.keys, v.violations, v.undecided,
		v.excused.splitVotes, v.excused.leftovers, v.excused.seenRefusals, v.excused.splitRemovals, v.excused.lateRemovals)
}

// wantNone wants no violation, and everything decided.
func (v verdict) wantNone(t *testing.T) {
	t.Helper()
	t.Log(v)
	if v.violations > 0 {
		t.Errorf("%d VIOLATIONS, such as:", v.violations)
		for _, key := range v.examples[:min(3, v.violations)] {
			t.Log(key)
		}
	}
	if v.undecided > 0 {
		t.Errorf("%d histories were not decided within %v each", v.undecided, checkPatience)
	}
}

// wantSome wants the checker to have found something.
func (v verdict) wantSome(t *testing.T) {
	t.Helper()
	t.Log(v)
	if v.violations == 0 {
		t.Error("no violation was found: the other tests of histories show nothing")
	}
}

// String is what matters of a history that cannot be explained: what was lost, and the rest up to where it goes wrong and a little
// more.
func (k *lockKey) String() string {
	ordered := slices.SortedFunc(slices.Values(k.records), func(a, b lockRecord) int { return cmp.Compare(a.to, b.to) })
	first := firstViolation(ordered)
	var text strings.Builder
	fmt.Fprintln(&text, k.name)
	for i, r := range ordered {
		switch {
		case i == first:
			fmt.Fprintln(&text, ">", r)
		case i >= first-30 && i < first+5, r.op.fate == lost && i < first, r.to >= ordered[first].from && i < first:
			fmt.Fprintln(&text, " ", r)
		}
	}
	return text.String()
}

func (r lockRecord) String() string {
	reply := fmt.Sprint(r.reply)
	if r.op.fate == lost {
		reply = "lost"
	}
	return fmt.Sprintf("client %d %v to %v: %s %s → %s", r.client, r.from, r.to, r.op.verb, r.op.value, reply)
}

// firstViolation is the record, in the order of the replies, up to which all can be explained by those that were sent by then.
func firstViolation(ordered []lockRecord) int {
	explained := func(n int) bool {
		at := ordered[n-1].to
		var upTo []lockRecord
		for i, r := range ordered {
			switch {
			case i < n:
				upTo = append(upTo, r)
			case r.from <= at:
				r.op.fate = lost // it may have been carried out already
				upTo = append(upTo, r)
			}
		}
		return checkLockKey(upTo).result != porcupine.Illegal
	}
	low, high := 0, len(ordered) // explained(low), not explained(high)
	for high-low > 1 {
		if middle := (low + high) / 2; explained(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// TestHistoriesOfOneRedis: the checker finds nothing wrong with a single Redis.
func TestHistoriesOfOneRedis(t *testing.T) {
	c := startCrowd(t, &crowd{addrs: []string{startRedis(t).Addr()}, seed: rand.Uint64(), verbs: overwriting()}, crowdSize, 5000)
	c.report(t)
	v := c.judge()
	v.wantNone(t)
	if v.excused != (excuses{}) {
		t.Error("a single Redis needs no excuse")
	}
}

// TestHistoriesSeeTwoRedises: where half of the clients use another Redis, and think it the same, the checker says so.
func TestHistoriesSeeTwoRedises(t *testing.T) {
	c := startCrowd(t, &crowd{addrs: []string{startRedis(t).Addr(), startRedis(t).Addr()}, seed: rand.Uint64(), verbs: overwriting()}, crowdSize, 2000)
	c.report(t)
	c.judge().wantSome(t)
}

// TestHistoriesSeeALiar: one client of ten who now and then says that he has what he was refused.
func TestHistoriesSeeALiar(t *testing.T) {
	lies := 0
	liar := func(client int, op lockOp, reply any) any {
		if client != 3 || op.verb != verbTake || reply != nil || op.fate == lost {
			return reply
		}
		lies++
		return "OK"
	}
	c := startCrowd(t, &crowd{addrs: []string{startRedis(t).Addr()}, seed: rand.Uint64(), verbs: overwriting(), tell: liar}, crowdSize, 2000)
	c.report(t)
	t.Logf("%d lies", lies)
	c.judge().wantSome(t)
}

// TestHistoriesSeeAThief: somebody deletes the keys behind the clients' backs.
func TestHistoriesSeeAThief(t *testing.T) {
	server := startRedis(t)
	c := startCrowd(t, &crowd{addrs: []string{server.Addr()}, seed: rand.Uint64(), verbs: overwriting()}, crowdSize, 5000)
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.clients.Wait()
	}()
	client, err := harness.Dial(server.Addr(), patience)
	must(t, err)
	defer client.Close()
	for thefts := 0; ; thefts++ {
		select {
		case <-over:
			t.Logf("%d thefts", thefts)
			c.report(t)
			c.judge().wantSome(t)
			return
		case <-time.After(5 * time.Millisecond):
			do(t, client, "FLUSHALL")
		}
	}
}

// mixes are what the clients of TestHistories send.
func mixes() map[string][]lockVerb {
	return map[string][]lockVerb{"locking": locking(), "overwriting": overwriting()}
}

// TestHistories: ten clients of two proxies use the same few lock keys by ordinary commands, while a minority of the masters is
// stopped, cut off and killed at random. Every reply is one that a single Redis could have given; see checkLockKey.
func TestHistories(t *testing.T) {
	ops, seed := int(numberFrom(t, opsEnv, defaultOps)), numberFrom(t, seedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", ops, opsEnv, seed, seedEnv)
	for name, verbs := range mixes() {
		t.Run(name, func(t *testing.T) {
			f := startLockKeyFleet(t, 2)
			disturber := startDisturber(f, seed, lockKeyDisturbances()...)
			c := startCrowd(t, &crowd{addrs: f.addrs(), seed: seed, verbs: verbs}, crowdSize, ops/len(mixes()))
			c.clients.Wait()
			done, err := disturber.stop()
			c.report(t)
			t.Logf("the masters were disturbed: %v", done)
			must(t, err)
			c.judge().wantNone(t)
		})
	}
}

// TestHistoriesUndisturbed: the same with masters that are well, where no command may fail.
func TestHistoriesUndisturbed(t *testing.T) {
	for name, verbs := range mixes() {
		t.Run(name, func(t *testing.T) {
			f := startLockKeyFleet(t, 2, patientMasters()...)
			c := startCrowd(t, &crowd{addrs: f.addrs(), seed: rand.Uint64(), verbs: verbs}, crowdSize, 2000)
			c.report(t)
			c.judge().wantNone(t)
			for kind, times := range c.replies {
				if strings.HasSuffix(kind, " → NOQUORUM") || strings.HasSuffix(kind, " → no reply") {
					t.Errorf("%d times %s, with all masters well", times, kind)
				}
			}
		})
	}
}

// TestHistoriesSeeDisjointMasters: two proxies that share no master are two lock servers, and that is found.
func TestHistoriesSeeDisjointMasters(t *testing.T) {
	masters, upstream := startMasters(t), startRedis(t)
	one := startProxy(t, harness.URLs(masters[:3]), lockKeyArgs(upstream)...)
	other := startProxy(t, harness.URLs(masters[3:]), lockKeyArgs(upstream)...)
	c := startCrowd(t, &crowd{addrs: []string{one.Addr(), other.Addr()}, seed: rand.Uint64(), verbs: overwriting()}, crowdSize, 2000)
	c.report(t)
	c.judge().wantSome(t)
}

// lockKeyArgs are the arguments with which a proxy takes lock:* for lock keys, before this upstream.
func lockKeyArgs(upstream *harness.Redis) []string {
	return []string{"--lock-keys", "lock:*", "--upstream", upstream.URL()}
}

// startLockKeyFleet starts five masters that forget nothing in a crash, and proxies with lock keys, linked to them.
func startLockKeyFleet(t *testing.T, proxies int, args ...string) *fleet {
	t.Helper()
	f, upstream := &fleet{}, startRedis(t)
	for range 5 {
		f.masters = append(f.masters, startRedis(t, harness.Durable()...))
	}
	for range proxies {
		links := startLinks(t, f.masters)
		f.links = append(f.links, links)
		f.proxies = append(f.proxies, startProxy(t, linkURLs(links), append(lockKeyArgs(upstream), args...)...))
	}
	return f
}

// patientMasters are arguments with which a busy machine is no fault of a master.
func patientMasters() []string { return []string{"--master-timeout", "5s"} }

// addrs are those of the proxies.
func (f *fleet) addrs() []string {
	var addrs []string
	for _, proxy := range f.proxies {
		addrs = append(addrs, proxy.Addr())
	}
	return addrs
}

// lockKeyDisturbances are the faults in which a master loses nothing, a crash among them.
func lockKeyDisturbances() []fault {
	return append(disturbances(), fault{"killed, and back with its data", false,
		func(f *fleet, i int) error { return f.masters[i].Kill() },
		func(f *fleet, i int) error { return f.masters[i].Revive() }})
}
