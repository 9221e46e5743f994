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
	// The defaults take half a minute on two busy cores.
	defaultGrants = 10_000
	defaultFaults = 30

	// busyClients use a few locks for a moment each, patientClients use fewer locks for seconds.
	// redsyncClients use locks like patientClients.
	busyClients    = 24
	patientClients = 8
	redsyncClients = 8
	// stallers lock with equal tokens and disconnect within large replies. keepers hold a few keys
	// for a long time. An operator force-unlocks keys.
	stallers, keepers = 4, 6
	stallPause        = 300 * time.Millisecond
	keepPause         = 200 * time.Millisecond
	forcePause        = 300 * time.Millisecond
	// agreed limits the time until the masters agree at the end, which is 3 s without load.
	agreed = 30 * time.Second
	// provenBy is the number of faults after which redsync must have shown an overlap.
	provenBy = 300
)

func TestMain(m *testing.M) { kit.Main(m) }

// TestChaos: while masters and proxies fail at random, no lock is held by two clients at once, is
// lost, or reappears.
func TestChaos(t *testing.T) {
	redistest.SkipShort(t)
	grants, wanted := int(kit.NumberFrom(t, grantsEnv, defaultGrants)), int(kit.NumberFrom(t, faultsEnv, defaultFaults))
	seed := kit.NumberFrom(t, seedEnv, rand.Uint64())
	t.Logf("%d grants (%s) and %d faults (%s) wanted; seed %d (%s)", grants, grantsEnv, wanted, faultsEnv, seed, seedEnv)
	c := startCluster(t)
	r := startRun(t, c, seed)
	began := r.proxies.now()
	d := startDisturber(c, seed, r.proxies.began)
	r.watch(d.wellBeing)
	starved := r.wait(t, d, grants, wanted)
	ended := r.proxies.now()
	err := d.stop()
	r.stop()
	kit.NoError(t, starved)
	kit.NoError(t, err)
	a := &agreement{cluster: c, mayBeOpen: func(key string) bool { return r.kept.known[key] < d.forgot }}
	a.want(t)
	r.report(t, d, a, began, ended)
	r.wantSound(t, d)
}

// run holds the clients of the proxies and the clients of redsync.
type run struct {
	cluster  *cluster
	seed     uint64
	proxies  *ledger
	redsync  *ledger
	lockKeys []string
	syncKeys []string
	kept     *kept
	crowd    crowd
	// observers request free locks all the time.
	observers *observers

	lookers  []*looker
	looking  sync.WaitGroup
	noLooks  chan struct{}
	stopOnce sync.Once
}

func startRun(t *testing.T, c *cluster, seed uint64) *run {
	t.Helper()
	busy := manner{names("lock:busy:", 12), 1500 * time.Millisecond, 2 * time.Millisecond, 10 * time.Millisecond}
	patient := manner{names("lock:patient:", 3), 5 * time.Second, 2 * time.Second, 60 * time.Millisecond}
	direct, equal := patient, names("lock:equal:", 3)
	direct.keys = names("redsync:", 3)
	r := &run{
		cluster: c, seed: seed, proxies: newLedger(), redsync: newLedger(),
		lockKeys: slices.Concat(busy.keys, patient.keys, equal), syncKeys: direct.keys,
		noLooks: make(chan struct{}), kept: &kept{keys: names("lock:kept:", 12), known: map[string]time.Duration{}},
	}
	startLarge(t, c)
	r.redsync.began, r.proxies.inspect = r.proxies.began, c.standing
	for i := range busyClients + patientClients {
		how := busy
		if i >= busyClients {
			how = patient
		}
		r.crowd.add(&worker{r.proxies, r.lockerOf(i), how, i, r.random(i)})
	}
	for i := range stallers {
		r.crowd.add(&staller{r.proxies, c.addrs(), equal, busyClients + patientClients + i, r.random(400 + i)})
	}
	for i := range keepers {
		r.crowd.add(&keeper{connection: r.connection(i, 500+i), kept: r.kept, random: r.random(600 + i), number: i})
	}
	line := r.connection(0, 700)
	line.patience = admission
	r.crowd.add(&operator{line, slices.Concat(r.lockKeys, r.kept.keys), r.random(701)})
	r.observers = observe(c, r.proxies)
	t.Cleanup(r.stop)
	mutexes := startRedsync(t, c)
	for i := range redsyncClients {
		r.crowd.add(&worker{r.redsync, &redsyncLocks{sync: mutexes}, direct, i, r.random(100 + i)})
	}
	return r
}

func (r *run) random(i int) *rand.Rand { return rand.New(rand.NewPCG(r.seed, uint64(i)+2)) }

// connection returns a client's connection, first to the proxy number at.
func (r *run) connection(at, random int) *connection {
	return &connection{ledger: r.proxies, addrs: r.cluster.addrs(), at: at % proxyCount, random: r.random(random)}
}

func (c *cluster) addrs() (all []string) {
	for _, proxy := range c.proxies {
		all = append(all, proxy.addr)
	}
	return all
}

// lockerOf returns the locker of client number i. Half of the clients use LOCK, EXTEND and UNLOCK.
func (r *run) lockerOf(i int) locker {
	c := r.connection(i, 300+i)
	if i/proxyCount%2 == 0 {
		return lockCommands{c, r.random(200 + i)}
	}
	return ordinaryCommands{c}
}

// startRedsync connects redsync to the masters directly, over links of its own.
func startRedsync(t *testing.T, c *cluster) *redsync.Redsync {
	t.Helper()
	var pools []redsyncredis.Pool
	for _, master := range c.masters() {
		client := redis.NewClient(&redis.Options{
			Addr: master.links[proxyCount].Addr(), MaxRetries: -1, DialTimeout: patience / 5, ReadTimeout: patience / 5,
			ContextTimeoutEnabled: true,
		})
		t.Cleanup(func() { kit.NoError(t, client.Close()) })
		pools = append(pools, goredis.NewPool(client))
	}
	return redsync.New(pools...)
}

// watch starts to read the masters regularly.
func (r *run) watch(well func() wellBeing) {
	r.lookers = []*looker{
		{cluster: r.cluster, ledger: r.proxies, keys: r.lockKeys, well: well, confirm: r.cluster.holdsByProxy},
		{cluster: r.cluster, ledger: r.redsync, keys: r.syncKeys, well: well},
	}
	for _, l := range r.lookers {
		r.looking.Go(func() { l.run(r.noLooks, 100*time.Millisecond) })
	}
}

// wait waits for the given numbers of grants and faults, and logs them each minute.
func (r *run) wait(t *testing.T, d *disturber, grants, faults int) error {
	last, since := 0, time.Now()
	for shown := since; ; {
		select {
		case <-d.over: // it has failed
			return nil
		case <-time.After(100 * time.Millisecond):
		}
		got := r.proxies.granteds()
		if time.Since(shown) > time.Minute {
			shown = time.Now()
			t.Logf("%d grants and %d faults so far", got, d.faults())
		}
		switch {
		case got >= grants && d.faults() >= faults:
			return nil
		case got > last:
			last, since = got, time.Now()
		case time.Since(since) > admission:
			return fmt.Errorf("no grant within %v, after %d", admission, got)
		}
	}
}

// stop ends all clients. It may be called again.
func (r *run) stop() {
	r.stopOnce.Do(func() {
		r.crowd.stop()
		r.observers.stop()
		close(r.noLooks)
		r.looking.Wait()
	})
}

// wantSound fails the test if the proxies have violations, or if redsync shows none.
func (r *run) wantSound(t *testing.T, d *disturber) {
	t.Helper()
	for kind, found := range r.proxies.violations() {
		for _, v := range found[:min(5, len(found))] {
			t.Errorf("%d %s, such as\n%v\n%s", len(found), strings.ToUpper(kind), v, d.before(v.at))
		}
	}
	if d.faults() >= provenBy && len(r.redsync.violations()["overlaps"]) == 0 {
		t.Errorf("redsync has no overlap in %d faults: this shows nothing", d.faults())
	}
}

// violations returns all violations by kind.
func (l *ledger) violations() map[string][]violation {
	found := map[string][]violation{"lost": slices.Collect(maps.Values(l.lost)),
		"revived": slices.Collect(maps.Values(l.revived)), "overlaps": nil}
	for _, o := range overlaps(l.over) {
		found["overlaps"] = append(found["overlaps"], o.violation())
	}
	for _, some := range found {
		slices.SortFunc(some, func(a, b violation) int { return cmp.Compare(a.at, b.at) })
	}
	return found
}

// report logs the figures of a period.
func (r *run) report(t *testing.T, d *disturber, a *agreement, from, to time.Duration) {
	t.Helper()
	var table strings.Builder
	row := func(name string, proxies, redsync any) {
		fmt.Fprintf(&table, "%-54s %14v %10v\n", name, proxies, redsync)
	}
	row("", "proxies", "redsync")
	row("grants", r.proxies.granteds(), r.redsync.granteds())
	ours, theirs := r.proxies.violations(), r.redsync.violations()
	for _, kind := range []string{"overlaps", "lost", "revived"} {
		row(kind, len(ours[kind]), len(theirs[kind]))
	}
	row("on a majority after a release, and no lock", r.lookers[0].unconfirmed, "")
	row("looks at the masters", r.lookers[0].looks, r.lookers[1].looks)
	row("grants to observers, of locks that nobody else wants", len(r.observers.grants), "")
	grants := r.observers.with(r.proxies.grants)
	some, gaps := availability(grants, from, to, nil)
	row("tenths of a second with a grant", fmt.Sprintf("%.2f %%", 100*some), "")
	row("longest time without a grant", gaps[0].length().Round(time.Millisecond), "")
	apart, others := availability(grants, from, to, d.replacing)
	row("the same, but for while masters were replaced", fmt.Sprintf("%.2f %%", 100*apart), "")
	row("", others[0].length().Round(time.Millisecond), "")
	p50, p99 := percentiles(r.proxies.took)
	row("LOCK p50", p50, "")
	row("LOCK p99", p99, "")
	row("time", (to - from).Round(time.Second), "")
	fmt.Fprintf(&table, "faults: %d\n", d.faults())
	for _, kind := range slices.Sorted(maps.Keys(d.counts)) {
		fmt.Fprintf(&table, "%8d %s\n", d.counts[kind], kind)
	}
	fmt.Fprintln(&table, "answers:")
	for _, command := range slices.Sorted(maps.Keys(r.proxies.told)) {
		fmt.Fprintf(&table, "%8s %v\n", command, r.proxies.told[command])
	}
	waited, longest := percentiles(d.waited)
	fmt.Fprintf(&table, "the masters agreed after %v; %d keys of which nobody can know were forced free\n",
		a.took.Round(10*time.Millisecond), len(a.forced))
	fmt.Fprintf(&table, "a master that forgot voted again after %v (median), %v (p99)\n", waited, longest)
	t.Logf("\n%s", &table)
	for _, g := range gaps[:min(mostGaps, len(gaps))] {
		if g.length() > longGap {
			t.Logf("no client was granted a lock for %v after\n%s", g.length(), d.before(g.to))
		}
	}
}

// gap is a period without a grant. The report shows the faults before the longest gaps.
type gap struct{ from, to time.Duration }

func (g gap) length() time.Duration { return g.to - g.from }

const longGap, mostGaps = 500 * time.Millisecond, 8

// availability returns the part of all tenths of a second that have a grant, and the gaps, the
// longest first. It excludes the periods of but. A majority of the masters and all proxies except
// one are available all the time.
func availability(grants []time.Duration, from, to time.Duration, but []gap) (some float64, gaps []gap) {
	const tenth = 100 * time.Millisecond
	left := func(g gap) bool {
		return !slices.ContainsFunc(but, func(other gap) bool { return g.from < other.to && g.to > other.from })
	}
	tenths, last, all := map[time.Duration]bool{}, from, 0
	for _, at := range append(grants, to) {
		if at < from || at > to {
			continue
		}
		if left(gap{last, at}) {
			gaps = append(gaps, gap{last, at})
		}
		if last = at; at < to {
			tenths[(at-from)/tenth] = true
		}
	}
	with := 0
	for n := range (to - from + tenth - 1) / tenth {
		switch {
		case !left(gap{from + n*tenth, from + (n+1)*tenth}):
		case tenths[n]:
			with++
			fallthrough
		default:
			all++
		}
	}
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(b.length(), a.length()) })
	return float64(with) / float64(all), gaps
}

func percentiles(all []time.Duration) (p50, p99 time.Duration) {
	if len(all) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2].Round(10 * time.Microsecond), sorted[len(sorted)*99/100].Round(10 * time.Microsecond)
}
