package quorum

import (
	"slices"
	"testing"
	"testing/synctest"
)

// TestPeerWaiters checks that the other proxies know of a waiter until it removes its mark, that
// the lock is left to this waiter alone, and that they know when none waits.
func TestPeerWaiters(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		far := b.newCluster()
		here := peerWaiters{b.locker.Cluster, b.locker.source.Attempt(),
			func() []string { return []string{far.proxyID, "z", "-"} }}
		there := peerWaiters{far, far.source.Attempt(), func() []string { return []string{here.proxyID} }}
		synctest.Wait()
		want := func(who peerWaiters, want bool) {
			b.Helper()
			synctest.Wait()
			var got []bool
			who.Ask(job, func(wanted bool) { got = append(got, wanted) })
			synctest.Wait()
			if !slices.Equal(got, []bool{want}) {
				b.Errorf("answers %v, want %v", got, want)
			}
		}
		passes := func(want string) {
			b.Helper()
			var got []string
			here.Pass(job, func(to string) { got = append(got, to) })
			synctest.Wait()
			if !slices.Equal(got, []string{want}) {
				b.Errorf("left to %q, want %q", got, want)
			}
		}
		want(here, false)
		mark := there.Mark(job)
		defer mark.Stop()
		mark.Put() // on masters without a watch
		want(here, true)
		want(there, false)
		passes(far.proxyID)
		want(here, true) // the waiter has not come yet
		asked := false
		there.Unmark(job, func() { asked = true })
		if !asked {
			b.Error("what is to be sent with it is not asked for")
		}
		want(here, false)
		passes("")
		if here.Alone() || there.Alone() {
			b.Error("others are not known")
		}
		b.masters[0].away()
		b.masters[1].away()
		want(here, false) // unknown
		alone := peerWaiters{here.Cluster, here.attempt, func() []string { return nil }}
		if !here.Alone() || !alone.Alone() {
			b.Error("too few masters would have a mark, or nobody is there to see it")
		}
		alone.Ask(job, func(wanted bool) { asked = wanted })
		alone.Pass(job, func(to string) { asked = asked || to != "" })
		if asked {
			b.Error("others wait of whom none is known")
		}
	})
}

// TestTurns checks that the proxies take turns in a ring.
func TestTurns(t *testing.T) {
	for own, want := range map[string][]string{"a": {"b", "d", "f"}, "c": {"d", "f", "b"}, "g": {"b", "d", "f"}} {
		if got := inTurn([]string{"f", "b", "d"}, own); !slices.Equal(got, want) {
			t.Errorf("after %s: %v, want %v", own, got, want)
		}
	}
}
