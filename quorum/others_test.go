package quorum

import (
	"testing"
	"testing/synctest"
)

// TestOthers: a proxy that waits is known to the others, and not to itself, until it removes its mark; one overwrites the mark of another, and does not
// remove it.
func TestOthers(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		far := b.newCluster()
		here, there := others{b.locker.Cluster, b.locker.source.Attempt()}, others{far, far.source.Attempt()}
		synctest.Wait()
		want := func(who others, want bool) {
			b.Helper()
			synctest.Wait()
			told := 0
			who.Ask(job, func(waits bool) {
				if told++; waits != want {
					b.Errorf("it is told %v, want %v", waits, want)
				}
			})
			synctest.Wait()
			if told != 1 {
				b.Errorf("told %d times", told)
			}
		}
		want(here, false)
		there.Mark(job)
		want(here, true)
		want(there, false)
		here.Mark(job)
		want(there, true)
		there.Unmark(job)
		want(there, true)
		here.Unmark(job)
		want(there, false)
		b.masters[0].away()
		b.masters[1].away()
		want(here, false) // it is not known
	})
}
