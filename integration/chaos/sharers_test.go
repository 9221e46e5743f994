//go:build integration

package chaos

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// holderGrantsEnv sets the number of grants with SHARED, and of grants with SLOTS, for which
	// TestHoldersChaos waits.
	holderGrantsEnv     = "REDLOCK_CHAOS_HOLDERS"
	defaultHolderGrants = 1_500
	defaultHolderFaults = 15
	// slotCount is the number of slots of the locks with SLOTS.
	slotCount = 3
	// sharersPerKind is the number of clients of each kind of lock, and sharingStallers the number
	// of those clients that stall.
	sharersPerKind, sharingStallers = 15, 3
)

// sharing is a kind of lock that several clients may hold together.
type sharing struct {
	words []string // the words of LOCK
	slots int      // the value of holding.slots
	keys  []string
}

func sharings() []sharing {
	return []sharing{
		{[]string{"SHARED"}, unlimited, numberedKeys("lock:shared:", 3)},
		{[]string{"SLOTS", strconv.Itoa(slotCount)}, slotCount, numberedKeys("lock:slots:", 3)},
	}
}

// TestHoldersChaos lets masters and proxies fail at random, as in TestChaos, while clients take
// locks with SHARED and SLOTS, and sometimes exclusively, alone or with a second key. There are
// never more holders than slots, a client never has an exclusive lock together with another client,
// and no lock is lost.
func TestHoldersChaos(t *testing.T) {
	redistest.SkipShort(t)
	grants, faultsWanted := int(kit.NumberFrom(t, holderGrantsEnv, defaultHolderGrants)), int(kit.NumberFrom(t, faultsEnv, defaultHolderFaults))
	seed := kit.NumberFrom(t, seedEnv, rand.Uint64())
	t.Logf("%d grants of each kind (%s) and %d faults (%s) wanted; seed %d (%s)", grants, holderGrantsEnv, faultsWanted, faultsEnv, seed, seedEnv)
	c := startCluster(t)
	setLargeValues(t, c)
	r := startSharers(c, seed)
	t.Cleanup(r.stop)
	d := startDisturber(c, seed, r.proxyLedger.startedAt)
	waitErr := r.wait(t, d, r.proxyLedger.sharedGrantCount, grants, faultsWanted)
	end := r.proxyLedger.now()
	err := d.stop()
	r.stop()
	kit.NoError(t, waitErr)
	kit.NoError(t, err)
	a := &finalCheck{cluster: c, mayBeUndetermined: func(string) bool { return true }}
	a.wantAgreement(t)
	r.reportSharers(t, d, end)
	for kind, violations := range r.proxyLedger.violations() {
		for _, v := range violations[:min(5, len(violations))] {
			t.Errorf("%d %s, such as\n%v\n%s", len(violations), strings.ToUpper(kind), v, d.eventsBefore(v.at))
		}
	}
}

// startSharers starts clients that share locks, and an operator.
func startSharers(c *cluster, seed uint64) *run {
	r := newRun(c, seed)
	number := 0
	for _, kind := range sharings() {
		r.lockKeys = append(r.lockKeys, kind.keys...)
		u := usage{kind.keys, 1500 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond}
		for i := range sharersPerKind {
			number++
			if i < sharingStallers {
				r.clients.add(&staller{ledger: r.proxyLedger, addrs: c.addrs(), keys: kind.keys, number: number,
					random: r.newRandom(400 + number), sharing: &kind})
				continue
			}
			conn, random := r.connection(number, 300+number), r.newRandom(200+number)
			commands := &sharedCommands{one: lockCommands{conn, random}, several: &severalCommands{connection: conn, random: random}, sharing: kind}
			r.clients.add(&worker{r.proxyLedger, commands, u, number, r.newRandom(number)})
		}
	}
	r.addOperator(r.lockKeys)
	return r
}

// sharedCommands locks with LOCK … SHARED or LOCK … SLOTS, and sometimes exclusively, with LOCK or
// MLOCK.
type sharedCommands struct {
	one     lockCommands
	several *severalCommands
	sharing sharing
	// last holds the commands of the last lock, and lastSlots its value of holding.slots.
	last      locker
	lastSlots int
}

func (l *sharedCommands) lock(key, token string, lease time.Duration) (result, time.Duration) {
	words := []string{"LOCK", key, token, "PX", millis(lease)}
	l.last, l.lastSlots = l.one, 0
	switch choice := l.one.random.IntN(16); {
	case choice == 0:
		l.last = l.several
		return l.several.lock(key, token, lease)
	case choice > 1:
		words, l.lastSlots = append(words, l.sharing.words...), l.sharing.slots
	}
	if l.lastSlots == 0 || l.one.random.IntN(5) == 0 {
		words = append(words, "BLOCK", "400")
	}
	return validity(l.one.do(words...))
}

func (l *sharedCommands) extend(key, token string, lease time.Duration) (result, time.Duration) {
	return l.last.extend(key, token, lease)
}

func (l *sharedCommands) unlock(key, token string) result { return l.last.unlock(key, token) }

func (l *sharedCommands) slots() int { return l.lastSlots }

// reportSharers logs the figures of a run of startSharers. It fails the test unless locks of each
// kind had several holders.
func (r *run) reportSharers(t *testing.T, d *disturber, elapsed time.Duration) {
	t.Helper()
	l := r.proxyLedger
	most := map[int]int{}
	walkHoldings(l.endedHoldings, func(h holding, together []holding) { most[h.slots] = max(most[h.slots], len(together)+1) })
	for _, kind := range sharings() {
		t.Logf("%s: %d grants, at most %d holders together", strings.Join(kind.words, " "), l.slotGrants[kind.slots], most[kind.slots])
		if most[kind.slots] < 2 {
			t.Error("no lock had several holders: the test shows nothing")
		}
	}
	t.Logf("%d exclusive grants; %v", l.slotGrants[0], elapsed.Round(time.Second))
	for _, kind := range slices.Sorted(maps.Keys(d.counts)) {
		t.Logf("%8d %s", d.counts[kind], kind)
	}
	for _, command := range slices.Sorted(maps.Keys(l.replyCounts)) {
		t.Logf("%8s %v", command, l.replyCounts[command])
	}
}
