package quorum

import (
	"slices"
	"testing"
	"testing/synctest"
)

// TestPeerWaiters checks that a proxy finds the mark of another proxy until that proxy removes it,
// and leaves the lock only to a proxy with a mark.
func TestPeerWaiters(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		peerCluster := b.newCluster()
		own := peerWaiters{b.locker.Cluster, b.locker.source.Attempt(),
			func() []string { return []string{peerCluster.proxyID, "z", "-"} }}
		peer := peerWaiters{peerCluster, peerCluster.source.Attempt(), func() []string { return []string{own.proxyID} }}
		synctest.Wait()
		want := func(from peerWaiters, want bool) {
			b.Helper()
			synctest.Wait()
			var got []bool
			from.AskForWaiters(job, func(wanted bool) { got = append(got, wanted) })
			synctest.Wait()
			if !slices.Equal(got, []bool{want}) {
				b.Errorf("answers %v, want %v", got, want)
			}
		}
		passes := func(want string) {
			b.Helper()
			var got []string
			own.PassLock(job, func(to string) { got = append(got, to) })
			synctest.Wait()
			if !slices.Equal(got, []string{want}) {
				b.Errorf("left to %q, want %q", got, want)
			}
		}
		want(own, false)
		mark := peer.WaiterMark(job)
		defer mark.Stop()
		mark.Put() // no master is watched
		want(own, true)
		want(peer, false)
		passes(peerCluster.proxyID)
		want(own, true) // the waiter has not taken the lock yet
		asked := false
		peer.RemoveWaiterMark(job, func() { asked = true })
		if !asked {
			b.Error("what is to be sent with it is not asked for")
		}
		want(own, false)
		passes("")
		if own.IsAlone() || peer.IsAlone() {
			b.Error("others are not known")
		}
		b.masters[0].refuseConnections()
		b.masters[1].refuseConnections()
		want(own, false) // too few masters reply
		alone := peerWaiters{own.Cluster, own.attempt, func() []string { return nil }}
		if !own.IsAlone() || !alone.IsAlone() {
			b.Error("too few masters would have a mark, or nobody is there to see it")
		}
		alone.AskForWaiters(job, func(wanted bool) { asked = wanted })
		alone.PassLock(job, func(to string) { asked = asked || to != "" })
		if asked {
			b.Error("others wait of whom none is known")
		}
	})
}

// TestTurns checks that the proxies take turns in a ring.
func TestTurns(t *testing.T) {
	for own, want := range map[string][]string{"a": {"b", "d", "f"}, "c": {"d", "f", "b"}, "g": {"b", "d", "f"}} {
		if got := rotatePeers([]string{"f", "b", "d"}, own); !slices.Equal(got, want) {
			t.Errorf("after %s: %v, want %v", own, got, want)
		}
	}
}
