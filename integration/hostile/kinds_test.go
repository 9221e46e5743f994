//go:build integration

package hostile

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

const (
	// kindsEnv names the environment variable with the kinds of clients that attack together,
	// separated by commas. TestEachKind accepts several such sets, separated by semicolons.
	kindsEnv = "REDLOCK_HOSTILE_KINDS"
	// durationEnv names the environment variable with the time for which each set attacks.
	durationEnv = "REDLOCK_HOSTILE_EACH"
)

// TestEachKind prints the latencies of replies to honest clients at a proxy without the race
// detector. It measures them alone, with each kind of hostile client, with all kinds, and with
// harmless clients. It prints the p99 in ms for each command, and in brackets the p50 and the
// number of replies. Commands to a master or the upstream bypass the proxy, and show the speed of
// the machine and of this server. REDLOCK_HOSTILE_KINDS may list sets of kinds, which attack one
// after the other.
func TestEachKind(t *testing.T) {
	text := os.Getenv(durationEnv)
	if text == "" {
		t.Skip("only with " + durationEnv)
	}
	duration, err := time.ParseDuration(text)
	kit.Must(t, err)
	m := &attackedProxy{name: "without the race detector"}
	f := startMembers(t, m)
	l := newLockRecord()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	for i := range 8 {
		clients.Go(func() { runHonest(ctx, l, m.proxy.Addr(), fmt.Sprint("honest", i), m.name, true) })
	}
	clients.Go(func() { probe(ctx, l, "(upstream)", f.upstream.Addr()) })
	clients.Go(func() { probe(ctx, l, "(master)", f.masters[0].Addr()) })
	sleep(ctx, duration/10)
	l.report()
	sleep(ctx, duration)
	t.Log("alone: ", l.report())
	for _, set := range sets() {
		t.Log(set, ": ", f.reportWith(ctx, t, l, set, duration))
		wantServed(t, m.proxy)
	}
	for _, violation := range l.violations {
		t.Error(violation)
	}
}

// reportWith returns the results with a set of kinds. It adds the CPU time of the proxy and of the
// clients in the set, in percent of a core.
func (f *fleet) reportWith(ctx context.Context, t *testing.T, l *lockRecord, set string, duration time.Duration) string {
	t.Helper()
	clients, err := startAttackers(set, f.addrs()...)
	kit.Must(t, err)
	sleep(ctx, duration/10)
	l.report()
	proxyBefore, _ := f.members[0].proxy.CPU()
	clientsBefore, _ := clients.process.CPU()
	sleep(ctx, duration)
	report := l.report()
	proxyAfter, _ := f.members[0].proxy.CPU()
	clientsAfter, _ := clients.process.CPU()
	attackCounts, err := clients.stop()
	kit.Must(t, err)
	return fmt.Sprintf("%s; CPU of the proxy %d %%, of the others %d %%; %s", report, 100*(proxyAfter-proxyBefore)/duration,
		100*(clientsAfter-clientsBefore)/duration, attackCounts)
}

// sets returns the sets of kinds that attack one after the other: those of kindsEnv, or each kind
// alone, all hostile kinds, and each harmless kind alone.
func sets() []string {
	if names := os.Getenv(kindsEnv); names != "" {
		return strings.Split(names, ";")
	}
	var sets, names []string
	for _, a := range attacks() {
		sets, names = append(sets, a.name), append(names, a.name)
	}
	sets = append(sets, strings.Join(names, ","))
	for _, a := range harmlessAttacks() {
		sets = append(sets, a.name)
	}
	return sets
}
