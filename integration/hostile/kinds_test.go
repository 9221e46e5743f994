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
	// chosenVariable has the names of the kinds of hostile clients, separated by commas.
	chosenVariable = "REDLOCK_HOSTILE_KINDS"
	// eachVariable is the time for which each kind attacks alone.
	eachVariable = "REDLOCK_HOSTILE_EACH"
)

// TestEachKind prints how long honest clients wait for replies at a proxy without the race
// detector: with each kind of hostile client alone, with all kinds, and with harmless clients. It
// prints the p99 in ms for each command, and in brackets the p50 and the number of replies.
// Commands to a master or the upstream, which bypass the proxy, show how slow the machine and this
// server are. REDLOCK_HOSTILE_KINDS may have several kinds. Sets of kinds, separated by semicolons,
// attack one after the other.
func TestEachKind(t *testing.T) {
	text := os.Getenv(eachVariable)
	if text == "" {
		t.Skip("only with " + eachVariable)
	}
	each, err := time.ParseDuration(text)
	kit.Must(t, err)
	m := &member{name: "without the race detector"}
	f := startMembers(t, m)
	l := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for i := range 8 {
		running.Go(func() { honest(ctx, l, m.proxy.Addr(), fmt.Sprint("honest", i), m.name, true) })
	}
	running.Go(func() { probe(ctx, l, "(upstream)", f.upstream.Addr()) })
	running.Go(func() { probe(ctx, l, "(master)", f.masters[0].Addr()) })
	sleep(ctx, each/10)
	l.report()
	sleep(ctx, each)
	t.Log("alone: ", l.report())
	for _, set := range sets() {
		t.Log(set, ": ", f.besideSet(ctx, t, l, set, each))
		wantServed(t, m.proxy)
	}
	for _, wrong := range l.wrong {
		t.Error(wrong)
	}
}

// besideSet returns the results with a set of kinds, and the CPU time of the proxy and of these
// clients in percent of a core.
func (f *fleet) besideSet(ctx context.Context, t *testing.T, l *ledger, set string, each time.Duration) string {
	t.Helper()
	others, err := startAttackers(set, f.addrs()...)
	kit.Must(t, err)
	sleep(ctx, each/10)
	l.report()
	proxy, _ := f.members[0].proxy.CPU()
	theirs, _ := others.process.CPU()
	sleep(ctx, each)
	report := l.report()
	proxyAfter, _ := f.members[0].proxy.CPU()
	theirsAfter, _ := others.process.CPU()
	attacked, err := others.stop()
	kit.Must(t, err)
	return fmt.Sprintf("%s; CPU of the proxy %d %%, of the others %d %%; %s", report, 100*(proxyAfter-proxy)/each,
		100*(theirsAfter-theirs)/each, attacked)
}

// sets returns the sets of kinds that attack one after the other.
func sets() []string {
	if chosen := os.Getenv(chosenVariable); chosen != "" {
		return strings.Split(chosen, ";")
	}
	var each, all []string
	for _, a := range attacks() {
		each, all = append(each, a.name), append(all, a.name)
	}
	each = append(each, strings.Join(all, ","))
	for _, a := range harmless() {
		each = append(each, a.name)
	}
	return each
}
