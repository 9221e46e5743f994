package quorum

import (
	"slices"
	"testing"
	"testing/synctest"
)

// TestOthers: a proxy that waits is known to the others, in the order of their turns, until it removes its mark; a lock that is left to it is
// known to have been, and one that is left to a proxy which does not wait any more, too.
func TestOthers(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		far := b.newCluster()
		here := others{b.locker.Cluster, b.locker.source.Attempt(), func() []string { return []string{far.id, "z", "-"} }}
		there := others{far, far.source.Attempt(), func() []string { return []string{here.id} }}
		synctest.Wait()
		want := func(who others, want string) {
			b.Helper()
			synctest.Wait()
			var got []string
			who.Ask(job, func(next string) { got = append(got, next) })
			synctest.Wait()
			if !slices.Equal(got, []string{want}) {
				b.Errorf("answers %q, want %q", got, want)
			}
		}
		passes := func(want int) {
			b.Helper()
			gone := 0
			here.Pass(job, far.id, func() { gone++ })
			synctest.Wait()
			if gone != want {
				b.Errorf("gone %d times, want %d", gone, want)
			}
		}
		want(here, "")
		marked := 0
		there.Mark(job, func() { marked++ })
		want(here, far.id)
		want(there, "")
		if marked != 1 {
			b.Errorf("marked %d times", marked)
		}
		passes(0)
		want(here, far.id) // it has not come yet
		there.Unmark(job)
		want(here, "")
		passes(1)
		b.masters[0].away()
		b.masters[1].away()
		want(here, "") // it is not known
		alone := others{here.Cluster, here.as, func() []string { return nil }}
		for _, who := range []others{here, alone} {
			who.Mark(job, func() { b.Error("too few masters have the mark, or nobody is there to see it") })
			synctest.Wait()
		}
	})
}

// TestTurns: the proxies take their turns in a ring.
func TestTurns(t *testing.T) {
	for own, want := range map[string][]string{"a": {"b", "d", "f"}, "c": {"d", "f", "b"}, "g": {"b", "d", "f"}} {
		if got := inTurn([]string{"f", "b", "d"}, own); !slices.Equal(got, want) {
			t.Errorf("after %s: %v, want %v", own, got, want)
		}
	}
}
