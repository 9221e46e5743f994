//go:build integration

package lockkeys

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// opsEnv sets the number of commands that TestHistories sends.
	opsEnv = "REDLOCK_OPS"
	// defaultOps is the default; it takes some seconds on two busy cores.
	defaultOps = 4000
	// voteLimit bounds the wait until a master votes again.
	voteLimit = 20 * time.Second

	clientCount = 10

	// runsEnv sets the number of times that TestHistoriesWithoutFaults runs each mix. atOnceEnv
	// sets the number of mixes that run at a time, each with its own clients and keys. busyEnv sets
	// the number of processes that use CPU time.
	runsEnv   = "REDLOCK_RUNS"
	atOnceEnv = "REDLOCK_AT_ONCE"
	busyEnv   = "REDLOCK_BUSY"
	opsPerRun = 2000
	// masterTimeoutEnv sets the proxies' master-timeout in TestHistoriesWithoutFaults only. By
	// default it is long: on a busy machine, a master may not reply within 100 ms.
	masterTimeoutEnv = "REDLOCK_MASTER_TIMEOUT"
)

// verdict is the result of checking all histories.
type verdict struct {
	keys, undecidedKeys, violations int
	examples                        []*lockKey // histories with a violation
}

// maxExamples limits the number of wrong histories that a test shows and keeps.
const maxExamples = 3

func (v verdict) add(other verdict) verdict {
	examples := slices.Concat(v.examples, other.examples)
	return verdict{
		v.keys + other.keys, v.undecidedKeys + other.undecidedKeys, v.violations + other.violations,
		examples[:min(maxExamples, len(examples))],
	}
}

// checkHistories checks the histories of all keys, several at the same time.
func (c *lockClients) checkHistories() verdict {
	results := make([]porcupine.CheckResult, len(c.pool.keys))
	var next atomic.Int64
	var checkers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		checkers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(results); i = next.Add(1) - 1 {
				results[i] = checkLockKey(c.pool.keys[i].records)
			}
		})
	}
	checkers.Wait()
	v := verdict{keys: len(results)}
	for i, key := range c.pool.keys {
		switch results[i] {
		case porcupine.Unknown:
			v.undecidedKeys++
		case porcupine.Illegal:
			v.violations++
			v.examples = append(v.examples, key)
		}
	}
	return v
}

func (v verdict) String() string {
	return fmt.Sprintf("%d histories, %d violations, %d undecided", v.keys, v.violations, v.undecidedKeys)
}

// wantNoViolation fails the test if there is a violation or an undecided history.
func (v verdict) wantNoViolation(t *testing.T) {
	t.Helper()
	t.Log(v)
	if v.violations > 0 {
		t.Errorf("%d VIOLATIONS, such as:", v.violations)
		for _, key := range v.examples[:min(maxExamples, len(v.examples))] {
			t.Log(key)
		}
	}
	if v.undecidedKeys > 0 {
		t.Errorf("%d histories were not decided within %v each", v.undecidedKeys, checkTimeout)
	}
}

// wantViolation fails the test unless the checker has found a violation.
func (v verdict) wantViolation(t *testing.T) {
	t.Helper()
	t.Log(v)
	if v.violations == 0 {
		t.Error("no violation was found: the other tests of histories show nothing")
	}
}

// String returns the relevant parts of a history that cannot be explained. These are the commands
// around the first violation, the commands in flight at that time, and the earlier commands with
// lost replies.
func (k *lockKey) String() string {
	ordered := slices.SortedFunc(slices.Values(k.records), func(a, b lockRecord) int { return cmp.Compare(a.to, b.to) })
	first := firstViolation(ordered)
	var text strings.Builder
	fmt.Fprintln(&text, k.name)
	for i, r := range ordered {
		switch {
		case i == first:
			fmt.Fprintln(&text, ">", r)
		case i >= first-30 && i < first+5, r.op.outcome == outcomeUnknown && i < first, r.to >= ordered[first].from &&
			r.from <= ordered[first].to:
			fmt.Fprintln(&text, " ", r)
		}
	}
	return text.String()
}

func (r lockRecord) String() string {
	reply := fmt.Sprint(r.reply)
	if r.op.outcome == outcomeUnknown {
		reply = "lost"
	}
	value := r.op.value
	if r.op.verb == verbCompareSet || r.op.verb == verbExec {
		value = fmt.Sprintf("%q, then %s", r.op.expectedValue, value)
	}
	return fmt.Sprintf("client %d %v to %v: %s %s → %s", r.client, r.from, r.to, r.op.verb, value, reply)
}

// firstViolation returns the index of the first record whose reply cannot be explained by the
// commands sent until then. The records are in the order of the replies.
func firstViolation(records []lockRecord) int {
	return firstUnexplainedRecord(records, func(r lockRecord) (from, to time.Duration) { return r.from, r.to },
		func(r lockRecord) lockRecord { r.op.outcome = outcomeUnknown; return r },
		func(prefix []lockRecord) bool { return checkLockKey(prefix) != porcupine.Illegal })
}

// firstUnexplainedRecord returns the index of the first record, in the order of the replies, that
// makes the history impossible to explain. Commands in flight may have been executed already.
func firstUnexplainedRecord[R any](ordered []R, times func(R) (from, to time.Duration), asUnknown func(R) R, explains func([]R) bool) int {
	explained := func(n int) bool {
		_, until := times(ordered[n-1])
		prefix := slices.Clone(ordered[:n])
		for _, r := range ordered[n:] {
			if from, _ := times(r); from <= until {
				prefix = append(prefix, asUnknown(r))
			}
		}
		return explains(prefix)
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

// TestHistoriesOfOneRedis checks that the checker finds no violation by a single Redis.
func TestHistoriesOfOneRedis(t *testing.T) {
	redistest.SkipShort(t)
	c := startLockClients(t, &lockClients{addrs: []string{kit.StartReference(t).Addr()}, seed: rand.Uint64(), verbs: overwritingVerbs()},
		clientCount, 5000)
	c.report(t)
	c.checkHistories().wantNoViolation(t)
}

// TestHistoriesOfOneClient checks that the checker finds no violation if one client sends all forms
// of commands to a proxy, one after the other.
func TestHistoriesOfOneClient(t *testing.T) {
	redistest.SkipShort(t)
	f := startLockKeyFleet(t, 1)
	c := startLockClients(t, &lockClients{addrs: f.Addrs(), seed: rand.Uint64(), verbs: overwritingVerbs(), supportsLock: true}, 1, 1000)
	c.report(t)
	c.checkHistories().wantNoViolation(t)
}

// TestTwoRedisesInHistories checks that the checker finds a violation if half of the clients
// use another Redis.
func TestTwoRedisesInHistories(t *testing.T) {
	redistest.SkipShort(t)
	c := startLockClients(t, &lockClients{addrs: []string{kit.StartReference(t).Addr(), kit.StartReference(t).Addr()},
		seed: rand.Uint64(), verbs: overwritingVerbs()}, clientCount, 2000)
	c.report(t)
	c.checkHistories().wantViolation(t)
}

// TestFalseGrantsInHistories checks that the checker finds a violation if one of ten clients
// sometimes records a grant although its request was refused.
func TestFalseGrantsInHistories(t *testing.T) {
	redistest.SkipShort(t)
	falseGrants := 0
	addFalseGrants := func(client int, op lockOp, reply any) any {
		if client != 3 || op.verb != verbTake || reply != nil || op.outcome == outcomeUnknown {
			return reply
		}
		falseGrants++
		return "OK"
	}
	c := startLockClients(t, &lockClients{addrs: []string{kit.StartReference(t).Addr()}, seed: rand.Uint64(), verbs: overwritingVerbs(),
		alterReply: addFalseGrants}, clientCount, 2000)
	c.report(t)
	t.Logf("%d lies", falseGrants)
	c.checkHistories().wantViolation(t)
}

// TestDeletedKeysInHistories checks that the checker finds a violation if another program
// deletes the keys.
func TestDeletedKeysInHistories(t *testing.T) {
	redistest.SkipShort(t)
	server := kit.StartReference(t)
	c := startLockClients(t, &lockClients{addrs: []string{server.Addr()}, seed: rand.Uint64(), verbs: overwritingVerbs()}, clientCount, 5000)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		c.clients.Wait()
	}()
	client, err := redistest.Dial(server.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	for flushes := 0; ; flushes++ {
		select {
		case <-finished:
			t.Logf("%d thefts", flushes)
			c.report(t)
			c.checkHistories().wantViolation(t)
			return
		case <-time.After(5 * time.Millisecond):
			kit.Do(t, client, "FLUSHALL")
		}
	}
}

// verbSets returns the mixes of commands in TestHistories.
func verbSets() map[string][]lockVerb {
	return map[string][]lockVerb{"locking": lockingVerbs(), "overwriting": overwritingVerbs()}
}

// TestHistories checks that every reply is one that a single Redis could have given; see
// checkLockKey. Ten clients of two proxies use the same few lock keys with ordinary commands.
// Meanwhile a minority of the masters is stopped, disconnected and killed at random.
func TestHistories(t *testing.T) {
	ops, seed := int(kit.SizeFrom(t, opsEnv, defaultOps)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", ops, opsEnv, seed, kit.SeedEnv)
	for name, verbs := range verbSets() {
		t.Run(name, func(t *testing.T) {
			f := startLockKeyFleet(t, 2)
			disturber := faults.StartDisturber(f, seed, lockKeyFaults()...)
			c := startLockClients(t, &lockClients{addrs: f.Addrs(), seed: seed, verbs: verbs, supportsLock: true}, clientCount,
				ops/len(verbSets()))
			c.clients.Wait()
			faultCounts, err := disturber.Stop()
			c.report(t)
			t.Logf("the masters were disturbed: %v", faultCounts)
			kit.Must(t, err)
			c.checkHistories().wantNoViolation(t)
		})
	}
}

// TestHistoriesWithoutFaults repeats TestHistories without faults. No command may fail, but on a busy
// machine a reply may be late.
func TestHistoriesWithoutFaults(t *testing.T) {
	redistest.SkipShort(t)
	runs, atOnce, seed := int(kit.NumberFrom(t, runsEnv, 1)), int(kit.NumberFrom(t, atOnceEnv, 1)),
		kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d runs of each mix (%s), %d at a time (%s); seed %d (%s)", runs, runsEnv, atOnce, atOnceEnv, seed, kit.SeedEnv)
	for name, verbs := range verbSets() {
		t.Run(name, func(t *testing.T) {
			f := startLockKeyFleet(t, 2, masterTimeoutArgs()...)
			startBusy(t, int(kit.NumberFrom(t, busyEnv, 0)))
			var total tally
			var result verdict
			for run := 0; run < runs; {
				var groups []*lockClients
				for ; run < runs && len(groups) < atOnce; run++ {
					groups = append(groups, startLockClients(t, &lockClients{
						addrs: f.Addrs(), seed: seed + uint64(run), verbs: verbs, supportsLock: true,
						prefix: fmt.Sprintf("run%d:", run),
					}, clientCount, opsPerRun))
				}
				for _, c := range groups {
					total = total.add(c.finish())
					runResult := c.checkHistories()
					for _, key := range runResult.examples {
						t.Logf("%s a VIOLATION: %v", c.prefix, key)
					}
					result = result.add(runResult)
				}
				if run/50 > (run-len(groups))/50 {
					t.Logf("%d runs: %v", run, result)
				}
			}
			result.wantNoViolation(t)
			total.wantNoFailure(t)
			total.report(t)
		})
	}
}

// masterTimeoutArgs returns the arguments for the requested master-timeout, if there is one.
func masterTimeoutArgs() []string {
	if timeout := os.Getenv(masterTimeoutEnv); timeout != "" {
		return []string{"--master-timeout", timeout}
	}
	return nil
}

// startBusy starts processes that use CPU time until the test ends.
func startBusy(t *testing.T, loops int) {
	t.Helper()
	busy, err := harness.StartBusyLoops(loops)
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, busy.Close()) })
}

// TestDisjointMastersInHistories checks that the checker finds a violation if two proxies share
// no master. Such proxies grant locks independently of each other.
func TestDisjointMastersInHistories(t *testing.T) {
	redistest.SkipShort(t)
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	firstProxy := kit.StartProxy(t, redistest.URLs(masters[:3]), kit.LockKeyArgs(upstream)...)
	secondProxy := kit.StartProxy(t, redistest.URLs(masters[3:]), kit.LockKeyArgs(upstream)...)
	c := startLockClients(t, &lockClients{addrs: []string{firstProxy.Addr(), secondProxy.Addr()}, seed: rand.Uint64(), verbs: overwritingVerbs()},
		clientCount, 2000)
	c.report(t)
	c.checkHistories().wantViolation(t)
}

// startLockKeyFleet starts five masters that lose nothing when they are killed, and linked proxies
// with lock keys. The masters use no disk, on which they would wait for each other.
func startLockKeyFleet(t *testing.T, proxies int, args ...string) *kit.Fleet {
	t.Helper()
	f, upstream := &kit.Fleet{}, kit.StartRedis(t)
	for range 5 {
		f.Masters = append(f.Masters, redistest.New(t, redistest.Options{InMemory: true, ExtraArgs: redistest.DurableArgs()}))
	}
	for range proxies {
		links := kit.StartLinks(t, f.Masters)
		f.Links = append(f.Links, links)
		f.Proxies = append(f.Proxies, kit.StartProxy(t, kit.LinkURLs(links), append(kit.LockKeyArgs(upstream), args...)...))
	}
	return f
}

// lockKeyFaults returns the faults in which a master loses no data, including a crash. A
// crash ends when the master votes again, or after voteLimit. If the next fault began earlier, a
// majority could become unavailable, and eventually no master would hold the locks.
func lockKeyFaults() []faults.Fault {
	return append(faults.FaultsWithoutDataLoss(), crashFault())
}

func crashFault() faults.Fault {
	return faults.Fault{
		Name: "killed, and back with its data",
		Cause: func(f *kit.Fleet, i int) error {
			return errors.Join(f.Masters[i].Kill(), awaitState(f, i, "down"))
		},
		Repair: func(f *kit.Fleet, i int) error {
			return errors.Join(f.Masters[i].RestartWithData(), awaitState(f, i, "voting"))
		},
	}
}

// awaitState waits until every proxy reports a state of a master. After voteLimit it stops waiting
// without an error, because the histories must be correct in any state.
func awaitState(f *kit.Fleet, i int, state string) error {
	pattern := regexp.MustCompile(fmt.Sprintf(`redlock_master%d:[^\r\n]*\bstate=%s\b`, i, state))
	for _, proxy := range f.Proxies {
		client, err := redistest.Dial(proxy.Addr(), voteLimit)
		if err != nil {
			return err
		}
		defer client.Close()
		for end := time.Now().Add(voteLimit); ; time.Sleep(10 * time.Millisecond) {
			info, err := client.Do("PROXY", "INFO")
			switch {
			case err != nil:
				return err
			case pattern.MatchString(fmt.Sprint(info)):
			case time.Now().After(end):
				return nil
			default:
				continue
			}
			break
		}
	}
	return nil
}
