//go:build integration

package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// grantsEnv and faultsEnv set the numbers of grants and faults for which TestChaos waits.
	// seedEnv repeats the random choices of a run, as far as timing allows.
	grantsEnv = "REDLOCK_CHAOS_GRANTS"
	faultsEnv = "REDLOCK_CHAOS_FAULTS"
	seedEnv   = "REDLOCK_SEED"
	// defaultGrants and defaultFaults take half a minute on two busy cores.
	defaultGrants = 10_000
	defaultFaults = 30

	// busyClients is the number of clients that hold a few locks for a moment each.
	// longTimeoutClients is the number of clients that hold fewer locks for seconds. redsyncClients
	// clients do the same with redsync.
	busyClients        = 24
	longTimeoutClients = 8
	redsyncClients     = 8
	// stallerCount clients lock with equal tokens and disconnect while they receive large replies.
	// longHolderCount clients hold a few keys for a long time. forceUnlockPause is the maximum
	// pause of the operator that force-unlocks keys.
	stallerCount, longHolderCount = 4, 6
	stallPause                    = 300 * time.Millisecond
	longHolderPause               = 200 * time.Millisecond
	forceUnlockPause              = 300 * time.Millisecond
	// agreementTimeout limits the time until the masters agree at the end, which is 3 s without
	// load.
	agreementTimeout = 5 * time.Minute
	// minRedsyncFaults is the number of faults after which redsync must have shown an overlap.
	minRedsyncFaults = 300
)

func TestMain(m *testing.M) { kit.Main(m) }

// TestChaos lets masters and proxies fail at random. Meanwhile no lock is held by two clients at
// the same time, is lost, or reappears.
func TestChaos(t *testing.T) {
	redistest.SkipShort(t)
	grants, faultsWanted := int(kit.NumberFrom(t, grantsEnv, defaultGrants)), int(kit.NumberFrom(t, faultsEnv, defaultFaults))
	seed := kit.NumberFrom(t, seedEnv, rand.Uint64())
	t.Logf("%d grants (%s) and %d faults (%s) wanted; seed %d (%s)", grants, grantsEnv, faultsWanted, faultsEnv, seed, seedEnv)
	c := startCluster(t)
	r := startRun(t, c, seed)
	startedAt := r.proxyLedger.now()
	d := startDisturber(c, seed, r.proxyLedger.startedAt)
	r.inspectMasters(d.faultState)
	waitErr := r.wait(t, d, r.proxyLedger.grantCount, grants, faultsWanted)
	end := r.proxyLedger.now()
	err := d.stop()
	r.stop()
	kit.NoError(t, waitErr)
	kit.NoError(t, err)
	a := &finalCheck{cluster: c, mayBeUndetermined: func(key string) bool { return r.longKeys.knownAt[key] < d.lastVoteAfterLoss }}
	a.wantAgreement(t)
	r.report(t, d, a, startedAt, end)
	r.wantNoViolations(t, d)
}

// run holds the clients of the proxies and the clients of redsync.
type run struct {
	cluster       *cluster
	seed          uint64
	proxyLedger   *ledger
	redsyncLedger *ledger
	lockKeys      []string
	redsyncKeys   []string
	longKeys      *longKeys
	clients       clientGroup
	// observers request free locks all the time.
	observers *observers

	inspectors     []*inspector
	inspections    sync.WaitGroup
	stopInspecting chan struct{}
	stopOnce       sync.Once
}

func startRun(t *testing.T, c *cluster, seed uint64) *run {
	t.Helper()
	busyUsage := usage{numberedKeys("lock:busy:", 12), 1500 * time.Millisecond, 2 * time.Millisecond, 10 * time.Millisecond}
	patientUsage := usage{numberedKeys("lock:patient:", 3), 5 * time.Second, 2 * time.Second, 60 * time.Millisecond}
	redsyncUsage, equalTokenKeys := patientUsage, numberedKeys("lock:equal:", 3)
	redsyncUsage.keys = numberedKeys("redsync:", 3)
	r := newRun(c, seed)
	r.lockKeys, r.redsyncKeys = slices.Concat(busyUsage.keys, patientUsage.keys, equalTokenKeys), redsyncUsage.keys
	r.longKeys.keys = numberedKeys("lock:kept:", 12)
	setLargeValues(t, c)
	for i := range busyClients + longTimeoutClients {
		usage := busyUsage
		if i >= busyClients {
			usage = patientUsage
		}
		r.clients.add(&worker{r.proxyLedger, r.lockerFor(i), usage, i, r.newRandom(i)})
	}
	for i := range stallerCount {
		r.clients.add(&staller{ledger: r.proxyLedger, addrs: c.addrs(), keys: equalTokenKeys, number: busyClients + longTimeoutClients + i,
			random: r.newRandom(400 + i)})
	}
	for i := range longHolderCount {
		r.clients.add(&longHolder{connection: r.connection(i, 500+i), keys: r.longKeys, random: r.newRandom(600 + i), number: i})
	}
	r.addOperator(slices.Concat(r.lockKeys, r.longKeys.keys))
	r.observers = startObservers(c, r.proxyLedger)
	t.Cleanup(r.stop)
	mutexes := startRedsync(t, c)
	for i := range redsyncClients {
		r.clients.add(&worker{r.redsyncLedger, &redsyncLocks{mutexFactory: mutexes}, redsyncUsage, i, r.newRandom(100 + i)})
	}
	return r
}

// newRun returns a run without clients.
func newRun(c *cluster, seed uint64) *run {
	r := &run{
		cluster: c, seed: seed, proxyLedger: newLedger(), redsyncLedger: newLedger(),
		stopInspecting: make(chan struct{}), longKeys: &longKeys{knownAt: map[string]time.Duration{}}, observers: &observers{},
	}
	r.redsyncLedger.startedAt, r.proxyLedger.inspect = r.proxyLedger.startedAt, c.describeKey
	return r
}

// addOperator adds an operator that force-unlocks these keys.
func (r *run) addOperator(keys []string) {
	conn := r.connection(0, 700)
	conn.timeout = votingTimeout
	r.clients.add(&operator{conn, keys, r.newRandom(701)})
}

func (r *run) newRandom(i int) *rand.Rand { return rand.New(rand.NewPCG(r.seed, uint64(i)+2)) }

// connection returns a client's connection, first to the proxy with the given index.
func (r *run) connection(index, randomIndex int) *connection {
	return &connection{ledger: r.proxyLedger, addrs: r.cluster.addrs(), index: index % proxyCount, random: r.newRandom(randomIndex)}
}

func (c *cluster) addrs() (addrs []string) {
	for _, proxy := range c.proxies {
		addrs = append(addrs, proxy.addr)
	}
	return addrs
}

// lockerFor returns the locker of client number i. A quarter of the clients use LOCK, EXTEND and
// UNLOCK, and a quarter use MLOCK, MEXTEND and MUNLOCK. The other clients use ordinary commands.
func (r *run) lockerFor(i int) locker {
	c := r.connection(i, 300+i)
	switch i / proxyCount % 4 {
	case 0:
		return lockCommands{c, r.newRandom(200 + i)}
	case 2:
		return &severalCommands{connection: c, random: r.newRandom(200 + i)}
	default:
		return ordinaryCommands{c}
	}
}

// startRedsync connects redsync to the masters directly, over links of its own.
func startRedsync(t *testing.T, c *cluster) *redsync.Redsync {
	t.Helper()
	var pools []redsyncredis.Pool
	for _, master := range c.masters() {
		client := redis.NewClient(&redis.Options{
			Addr: master.links[proxyCount].Addr(), MaxRetries: -1, DialTimeout: replyTimeout / 5, ReadTimeout: replyTimeout / 5,
			ContextTimeoutEnabled: true,
		})
		t.Cleanup(func() { kit.NoError(t, client.Close()) })
		pools = append(pools, goredis.NewPool(client))
	}
	return redsync.New(pools...)
}

// inspectMasters starts to read the masters regularly.
func (r *run) inspectMasters(faultState func() faultState) {
	r.inspectors = []*inspector{
		{cluster: r.cluster, ledger: r.proxyLedger, keys: r.lockKeys, faultState: faultState, confirm: r.cluster.isHeldAtProxy,
			readTimeout: shortReadTimeout},
		{cluster: r.cluster, ledger: r.redsyncLedger, keys: r.redsyncKeys, faultState: faultState, readTimeout: shortReadTimeout},
	}
	for _, l := range r.inspectors {
		r.inspections.Go(func() { l.run(r.stopInspecting, 100*time.Millisecond) })
	}
}

// wait waits until countGrants returns at least grants, and at least the given number of faults has
// happened. It logs both numbers each minute.
func (r *run) wait(t *testing.T, d *disturber, countGrants func() int, grants, faults int) error {
	t.Helper()
	last, lastGrant := 0, time.Now()
	for lastLog := lastGrant; ; {
		select {
		case <-d.stopping: // the disturber has failed
			return nil
		case <-time.After(100 * time.Millisecond):
		}
		grantCount := countGrants()
		if time.Since(lastLog) > time.Minute {
			lastLog = time.Now()
			t.Logf("%d grants and %d faults so far", grantCount, d.totalFaults())
		}
		switch {
		case grantCount >= grants && d.totalFaults() >= faults:
			return nil
		case grantCount > last:
			last, lastGrant = grantCount, time.Now()
		case time.Since(lastGrant) > votingTimeout:
			return fmt.Errorf("no grant within %v, after %d", votingTimeout, grantCount)
		}
	}
}

// stop ends all clients, observers and inspectors. It may be called again.
func (r *run) stop() {
	r.stopOnce.Do(func() {
		r.clients.stop()
		r.observers.stop()
		close(r.stopInspecting)
		r.inspections.Wait()
	})
}

// wantNoViolations fails the test if the proxies have violations, or if redsync has no overlap
// after minRedsyncFaults.
func (r *run) wantNoViolations(t *testing.T, d *disturber) {
	t.Helper()
	for kind, violations := range r.proxyLedger.violations() {
		for _, v := range violations[:min(5, len(violations))] {
			t.Errorf("%d %s, such as\n%v\n%s", len(violations), strings.ToUpper(kind), v, d.eventsBefore(v.at))
		}
	}
	if d.totalFaults() >= minRedsyncFaults && len(r.redsyncLedger.violations()["overlaps"]) == 0 {
		t.Errorf("redsync has no overlap in %d faults: this shows nothing", d.totalFaults())
	}
}

// violations returns all violations by kind.
func (l *ledger) violations() map[string][]violation {
	violations := map[string][]violation{"lost": slices.Collect(maps.Values(l.losses)),
		"revived": slices.Collect(maps.Values(l.revivals)), "overlaps": nil}
	for _, o := range overlaps(l.endedHoldings) {
		violations["overlaps"] = append(violations["overlaps"], o.violation())
	}
	for _, list := range violations {
		slices.SortFunc(list, func(a, b violation) int { return cmp.Compare(a.at, b.at) })
	}
	return violations
}

// overlapsBySlots counts the overlaps so far by the number of slots.
func (l *ledger) overlapsBySlots() map[int]int {
	l.mu.Lock()
	ended := slices.Clone(l.endedHoldings)
	l.mu.Unlock()
	found := map[int]int{}
	for _, o := range overlaps(ended) {
		found[o.second.slots]++
	}
	return found
}

// report logs the figures of a period.
func (r *run) report(t *testing.T, d *disturber, a *finalCheck, from, to time.Duration) {
	t.Helper()
	var table strings.Builder
	row := func(name string, proxies, redsync any) {
		fmt.Fprintf(&table, "%-54s %14v %10v\n", name, proxies, redsync)
	}
	row("", "proxies", "redsync")
	row("grants", r.proxyLedger.grantCount(), r.redsyncLedger.grantCount())
	proxyViolations, redsyncViolations := r.proxyLedger.violations(), r.redsyncLedger.violations()
	for _, kind := range []string{"overlaps", "lost", "revived"} {
		row(kind, len(proxyViolations[kind]), len(redsyncViolations[kind]))
	}
	row("on a majority after a release, and no lock", r.inspectors[0].unconfirmedCount, "")
	row("looks at the masters", r.inspectors[0].inspections, r.inspectors[1].inspections)
	row("grants to observers, of locks that nobody else wants", len(r.observers.grants), "")
	grants := r.observers.allGrants(r.proxyLedger.grants)
	share, gaps := availability(grants, from, to, nil)
	row("tenths of a second with a grant", fmt.Sprintf("%.2f %%", 100*share), "")
	row("longest time without a grant", gaps[0].length().Round(time.Millisecond), "")
	shareOutside, gapsOutside := availability(grants, from, to, d.replacements)
	row("the same, but for while masters were replaced", fmt.Sprintf("%.2f %%", 100*shareOutside), "")
	row("", gapsOutside[0].length().Round(time.Millisecond), "")
	p50, p99 := percentiles(r.proxyLedger.latencies)
	row("LOCK p50", p50, "")
	row("LOCK p99", p99, "")
	row("time", (to - from).Round(time.Second), "")
	fmt.Fprintf(&table, "faults: %d\n", d.totalFaults())
	for _, kind := range slices.Sorted(maps.Keys(d.counts)) {
		fmt.Fprintf(&table, "%8d %s\n", d.counts[kind], kind)
	}
	fmt.Fprintln(&table, "answers:")
	for _, command := range slices.Sorted(maps.Keys(r.proxyLedger.replyCounts)) {
		fmt.Fprintf(&table, "%8s %v\n", command, r.proxyLedger.replyCounts[command])
	}
	median, p99Wait := percentiles(d.votingDelays)
	fmt.Fprintf(&table, "the masters agreed after %v; %d keys of which nobody can know were forced free\n",
		a.elapsed.Round(10*time.Millisecond), len(a.forcedKeys))
	fmt.Fprintf(&table, "a master that forgot voted again after %v (median), %v (p99)\n", median, p99Wait)
	t.Logf("\n%s", &table)
	for _, g := range gaps[:min(maxGaps, len(gaps))] {
		if g.length() > longGap {
			t.Logf("no client was granted a lock for %v after\n%s", g.length(), d.eventsBefore(g.to))
		}
	}
}

// gap is a period without a grant. The report shows the faults before the longest gaps.
type gap struct{ from, to time.Duration }

func (g gap) length() time.Duration { return g.to - g.from }

const longGap, maxGaps = 500 * time.Millisecond, 8

// availability returns the share of tenths of a second with a grant, and the gaps, the longest
// first. It ignores the excluded periods. A majority of the masters and all proxies except one are
// available all the time.
func availability(grants []time.Duration, from, to time.Duration, excluded []gap) (share float64, gaps []gap) {
	const tenth = 100 * time.Millisecond
	isCounted := func(g gap) bool {
		return !slices.ContainsFunc(excluded, func(other gap) bool { return g.from < other.to && g.to > other.from })
	}
	tenths, last, all := map[time.Duration]bool{}, from, 0
	for _, at := range append(grants, to) {
		if at < from || at > to {
			continue
		}
		if isCounted(gap{last, at}) {
			gaps = append(gaps, gap{last, at})
		}
		if last = at; at < to {
			tenths[(at-from)/tenth] = true
		}
	}
	granted := 0
	for n := range (to - from + tenth - 1) / tenth {
		switch {
		case !isCounted(gap{from + n*tenth, from + (n+1)*tenth}):
		case tenths[n]:
			granted++
			fallthrough
		default:
			all++
		}
	}
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(b.length(), a.length()) })
	return float64(granted) / float64(all), gaps
}

func percentiles(durations []time.Duration) (p50, p99 time.Duration) {
	if len(durations) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[len(sorted)/2].Round(10 * time.Microsecond), sorted[len(sorted)*99/100].Round(10 * time.Microsecond)
}
