//go:build integration

package schedules

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// holdAccepts holds the accepts of the proxy's ballots about the key to the given masters. marker
// selects the accepts that keep the value ("keep") or set a new expiry ("px").
func (p *proxy) holdAccepts(key, marker string, masters ...int) holds {
	word := fmt.Appendf(nil, "\r\n$%d\r\n%s\r\n", len(marker), marker)
	var heldAccepts holds
	for _, i := range masters {
		heldAccepts = append(heldAccepts, p.links[i].HoldCommands(func(command []byte) bool {
			return bytes.Contains(command, []byte(key)) && bytes.Contains(command, word)
		}))
	}
	return heldAccepts
}

// waitFor waits until at least n holds have a message, and returns the indexes of all such holds.
func (h holds) waitFor(t *testing.T, n int) (indexes []int) {
	t.Helper()
	kit.Eventually(t, func() error {
		indexes = nil
		for i, hold := range h {
			if hold.Wait(1, 0) == nil {
				indexes = append(indexes, i)
			}
		}
		if len(indexes) < n {
			return fmt.Errorf("%d of %d masters were sent it", len(indexes), n)
		}
		return nil
	})
	return indexes
}

// TestExtendDuringRefill extends a lock of 12 s, which is on A to D, to ten minutes. Before that,
// another proxy copies the lock to E by a ballot that keeps its value, and the accept reaches only
// one master. The EXTEND is granted by the other masters, or by all masters between the promises
// and the accepts of a second ballot. No rival gets the lock after the 12 s.
func TestExtendDuringRefill(t *testing.T) {
	t.Parallel()
	for _, duringBallot := range []bool{false, true} {
		t.Run(fmt.Sprint("between ", duringBallot), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 5)
			owner, otherProxy, third := f.startProxy(t), f.startProxy(t), f.startProxy(t)
			client, rival := connect(t, owner), connect(t, third)
			// The owner's proxy never restores the lock on E.
			defer owner.hold("lock:k", 0, E).discard()
			// The third proxy does not restore the lock on E before the other proxy has restored
			// it.
			thirdAccepts := third.holdAccepts("lock:k", "keep",
				f.allMasters()...)
			validUntil := wantGrant(t, client, "LOCK", "lock:k", "t", "PX", "12000")
			accepts := otherProxy.holdAccepts("lock:k", "keep", A, B, C, D)
			// A read that is decided before the reply of E restores nothing.
			kit.Eventually(t, func() error {
				sendAsync(connect(t, otherProxy), "LOCKINFO", "lock:k")
				for _, first := range accepts {
					if first.Wait(1, 300*time.Millisecond) == nil {
						return nil
					}
				}
				return errors.New("the lock is not restored on E")
			})
			first := accepts.waitFor(t, 3)[0]
			// The other proxy does not try again.
			defer otherProxy.holdAccepts("lock:k", "keep", f.allMasters()...).discard()
			accepts[first].Release()
			time.Sleep(20 * time.Millisecond) // so that the released message arrives first
			accepts.discard()
			thirdAccepts.discard()
			if duringBallot {
				accepts = third.holdAccepts("lock:k", "keep", A, B, C, D)
				read := sendAsync(connect(t, third), "GET", "lock:k")
				accepts.waitFor(t, 3)
				wantGrant(t, client, "EXTEND", "lock:k", "t", "PX", "600000")
				accepts.release()
				t.Log(<-read)
			} else {
				notReached := owner.hold("lock:k", 0, first)
				wantGrant(t, client, "EXTEND", "lock:k", "t", "PX", "600000")
				notReached.discard()
			}
			for time.Until(validUntil) > -time.Second {
				if reply := kit.Do(t, rival, "LOCK", "lock:k", "rival", "PX", "600000"); reply != nil &&
					!kit.IsNoQuorum(reply) {
					t.Fatalf("a rival's LOCK: %v, %v after the first lease", reply, -time.Until(validUntil))
				}
				time.Sleep(100 * time.Millisecond)
			}
			kit.Eventually(t, func() error {
				if pttl, _ := kit.Do(t, rival, "PTTL", "lock:k").(int64); pttl < 500_000 {
					return fmt.Errorf("%d ms are left", pttl)
				}
				return nil
			})
		})
	}
}

// wantNotHeld fails the test unless a rival is soon granted the key. A lock that might still hold
// it has longTTL, so that it does not expire meanwhile.
func wantNotHeld(t *testing.T, rival *redistest.Client, key string) {
	t.Helper()
	start := time.Now()
	if at := awaitGrant(t, rival, start.Add(kit.WaitLimit), "LOCK", key, "rival", "PX", longTTL); at.IsZero() {
		t.Errorf("%s is not free, though no client holds it: %v", key, kit.Do(t, rival, "LOCKINFO", key))
	} else {
		t.Logf("free after %v", at.Sub(start).Round(time.Millisecond))
	}
}

// TestUndoOfLockAfterRemoval sends a LOCK right after a removal, so the LOCK uses a ballot. When
// its accepts are sent, the replies of all masters are lost for two seconds, and the client gets
// NOQUORUM. Soon after the masters are reachable again, the key is free.
func TestUndoOfLockAfterRemoval(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{
		{"LOCK", "lock:k", "lost", "PX", longTTL}, {"SET", "lock:k", "lost", "NX", "PX", longTTL},
		{"LOCK", "lock:k", "lost", "PX", longTTL, "FENCE"},
	} {
		t.Run(fmt.Sprint(command), func(t *testing.T) {
			f := startFleet(t, 5)
			p, otherProxy := f.startProxy(t), f.startProxy(t)
			client, rival := connect(t, p), connect(t, otherProxy)
			wantGrant(t, client, "LOCK", "lock:k", "first", "PX", longTTL)
			// Another proxy releases the lock by ballot.
			kit.Want(t, rival, int64(1), "UNLOCK", "lock:k", "first")
			accepts := p.holdAccepts("lock:k", "px", f.allMasters()...)
			reply := sendAsync(client, command...)
			accepts.waitFor(t, 3)
			// An empty key matches every reply.
			heldReplies := p.holdReplies("", f.allMasters()...)
			accepts.release()
			if got := <-reply; !kit.IsNoQuorum(got) {
				t.Fatalf("%v: %v, want NOQUORUM", command, got)
			}
			time.Sleep(2 * time.Second) // the fault lasts
			heldReplies.discard()
			p.wantVoting(t)
			wantNotHeld(t, rival, "lock:k")
		})
	}
}

// TestUndoOfRestoredLock loses the replies to a SET NX that reaches A, B and C. Meanwhile another
// proxy restores the key on D and E by ballot. Soon after the SET NX got NOQUORUM, the key is free.
func TestUndoOfRestoredLock(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	p, otherProxy := f.startProxy(t, "--master-timeout", "20s"), f.startProxy(t)
	rival := connect(t, otherProxy)
	heldReplies, notReached := p.holdReplies("lock:k", A, B, C), p.hold("lock:k", 0, D, E)
	reply := sendAsync(connect(t, p), "SET", "lock:k", "lost", "NX", "PX", longTTL)
	heldReplies.wait(t)
	notReached.wait(t)
	kit.Do(t, rival, "LOCKINFO", "lock:k")
	f.wantHolders(t, "lock:k", "lost", f.allMasters()...)
	heldReplies.discard()
	notReached.discard()
	if got := <-reply; !kit.IsNoQuorum(got) {
		t.Fatalf("SET NX: %v, want NOQUORUM", got)
	}
	p.wantVoting(t)
	wantNotHeld(t, rival, "lock:k")
}

// TestUndoOfLockWithoutFence covers a lock that is granted by ballot, while no majority gets its
// fence. For three seconds no further command about the key arrives, either. Then the lock is
// undone.
func TestUndoOfLockWithoutFence(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	p, otherProxy := f.startProxy(t), f.startProxy(t)
	client, rival := connect(t, p), connect(t, otherProxy)
	wantGrant(t, client, "LOCK", "lock:k", "first", "PX", longTTL)
	kit.Want(t, rival, int64(1), "UNLOCK", "lock:k", "first")
	accepts := p.holdAccepts("lock:k", "px", f.allMasters()...)
	reply := sendAsync(client, "LOCK", "lock:k", "lost", "PX", longTTL, "FENCE")
	accepts.waitFor(t, 2)
	var fenceCommands holds
	for _, link := range p.links {
		fenceCommands = append(fenceCommands, link.HoldCommands(faultlink.Containing("fence:lock:k")))
	}
	accepts.release()
	fenceCommands.waitFor(t, 2)
	laterCommands := p.hold("lock:k", 0, f.allMasters()...)
	time.Sleep(3 * time.Second) // the fault lasts
	if got := <-reply; !kit.IsNoQuorum(got) {
		t.Fatalf("LOCK FENCE: %v, want NOQUORUM", got)
	}
	fenceCommands.discard()
	laterCommands.discard()
	p.wantVoting(t)
	wantNotHeld(t, rival, "lock:k")
}

// TestWaiterAdoptsItsOwnAttempt loses the replies to the first attempt of a waiting LOCK, which
// reaches A, B and C. Meanwhile another proxy copies the key to D and E by ballot. A later attempt
// takes the key over, also with a fence, and is granted.
func TestWaiterAdoptsItsOwnAttempt(t *testing.T) {
	t.Parallel()
	for _, fence := range []bool{false, true} {
		t.Run(fmt.Sprint("fence ", fence), func(t *testing.T) {
			f := startFleet(t, 5)
			p, otherProxy := f.startProxy(t, "--master-timeout", "20s"), f.startProxy(t)
			heldReplies, notReached := p.holdReplies("lock:k", A, B, C), p.hold("lock:k", 0, D, E)
			command := []string{"LOCK", "lock:k", "token", "PX", longTTL, "BLOCK", fmt.Sprint(kit.WaitLimit.Milliseconds())}
			if fence {
				command = append(command, "FENCE")
			}
			start := time.Now()
			reply := sendAsync(connect(t, p), command...)
			heldReplies.wait(t)
			notReached.wait(t)
			kit.Do(t, connect(t, otherProxy), "LOCKINFO", "lock:k")
			f.wantHolders(t, "lock:k", "token", f.allMasters()...)
			heldReplies.discard()
			notReached.discard()
			got := <-reply
			_, fenced := got.([]any)
			if fenced != fence || !fence && !isGrant(got) {
				t.Fatalf("%v after %v", got, time.Since(start))
			}
			t.Logf("%v after %v", got, time.Since(start).Round(time.Millisecond))
		})
	}
}

// TestUnlockRetry covers an UNLOCK whose commands reach no master, so that it gets NOQUORUM.
// The proxy executes it as soon as a majority is reachable, even if another proxy has kept the
// value by ballot since.
func TestUnlockRetry(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	p, otherProxy := f.startProxy(t), f.startProxy(t)
	client, rival := connect(t, p), connect(t, otherProxy)
	f.takeLockOn(t, p, []int{A, B, C, D}, client, "LOCK", "lock:k", "t", "PX", longTTL)
	delayed := p.hold("lock:k", 0, f.allMasters()...)
	if got := kit.Do(t, client, "UNLOCK", "lock:k", "t"); !kit.IsNoQuorum(got) {
		t.Fatalf("UNLOCK: %v, want NOQUORUM", got)
	}
	kit.Do(t, rival, "LOCKINFO", "lock:k")
	f.wantHolders(t, "lock:k", "t", f.allMasters()...)
	delayed.discard()
	p.wantVoting(t)
	wantNotHeld(t, rival, "lock:k")
}
