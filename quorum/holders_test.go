package quorum

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/quorum/keygroup"
)

// lockFor requests the job through a locker without a wait.
func (b *fixture) lockFor(l *Locker, token string, slots int, ttl time.Duration) error {
	_, err := l.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: token, Slots: slots, TTL: ttl})
	synctest.Wait()
	return err
}

// wantHolders checks the tokens of the holders of the job.
func (b *fixture) wantHolders(want ...string) {
	b.Helper()
	holdings, err := b.locker.Holdings(b.Context(), []Key{job})
	b.wantErr(err, nil)
	var got []string
	for _, one := range holdings[0].Holders {
		got = append(got, one.Token)
	}
	if !slices.Equal(got, want) {
		b.Errorf("held by %q, want %q", got, want)
	}
}

// TestReadersAndWriter checks that readers of two proxies hold a lock together, each with a lease
// of its own. A writer gets the lock only if no reader holds it.
func TestReadersAndWriter(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		b.wantErr(b.lockFor(b.locker, "r1", Unlimited, time.Minute), nil)
		b.wantErr(b.lockFor(other, "r2", Unlimited, 2*time.Minute), nil)
		b.wantErr(b.lockFor(b.locker, "r3", Unlimited, time.Hour), nil)
		b.wantHolders("r1", "r2", "r3")
		b.wantErr(b.lockFor(b.locker, "w", 0, time.Minute), ErrHeld)
		b.wantErr(b.lockFor(other, "w", 0, time.Minute), ErrHeld)
		b.wantErr(b.lockFor(other, "r1", Unlimited, time.Minute), ErrHeld)
		b.wantErr(b.locker.Unlock(b.Context(), job, "r4"), ErrNotHeld)
		if slots := new(SlotsError); !errors.As(b.lockFor(other, "s", 7, time.Minute), &slots) || slots.Held != Unlimited || slots.Requested != 7 {
			b.Errorf("%+v", slots)
		}
		b.wantErr(other.Unlock(b.Context(), job, "r3"), nil)
		b.wantErr(b.locker.Unlock(b.Context(), job, "r3"), ErrNotHeld)
		if got, err := other.Extend(b.Context(), job, "r1", 3*time.Minute); err != nil || got.Validity < 178*time.Second || got.HadLongerLease {
			b.Errorf("%+v, %v", got, err)
		}
		time.Sleep(2*time.Minute + time.Second) // r2 has expired
		b.wantHolders("r1")
		b.wantErr(b.lockFor(other, "w", 0, time.Minute), ErrHeld)
		if got, err := b.locker.Extend(b.Context(), job, "r1", time.Second); err != nil || !got.HadLongerLease {
			b.Errorf("%+v, %v", got, err)
		}
		time.Sleep(time.Minute) // r1 has expired, and its cell has not
		b.wantHolders()
		b.wantErr(b.lockFor(other, "w", 0, time.Minute), nil)
		b.wantErr(b.lockFor(b.locker, "r", Unlimited, time.Minute), ErrHeld)
		b.wantErr(other.Unlock(b.Context(), job, "w"), nil)
		b.wantErr(b.lockFor(b.locker, "r", Unlimited, time.Minute), nil)
		b.wantErr(other.Unlock(b.Context(), job, "r"), nil)
		b.wantErr(b.lockFor(other, "w", 0, time.Minute), nil)
	})
}

// TestSlots checks that a lock has as many holders as slots.
func TestSlots(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		b.wantErr(b.lockFor(b.locker, "a", 2, time.Minute), nil)
		b.wantErr(b.lockFor(other, "b", 2, time.Hour), nil)
		b.wantErr(b.lockFor(other, "c", 2, time.Hour), ErrHeld)
		b.wantErr(b.lockFor(b.locker, "c", 2, time.Hour), ErrHeld)
		if err := b.lockFor(b.locker, "c", 3, time.Hour); err == nil || !strings.Contains(err.Error(), "SLOTS 2") || !strings.Contains(err.Error(), "SLOTS 3") {
			b.Error(err)
		}
		time.Sleep(time.Minute + time.Second)
		b.wantErr(b.lockFor(b.locker, "c", 2, time.Hour), nil)
		b.wantHolders("b", "c")
		b.wantErr(b.locker.Unlock(b.Context(), job, "b"), nil)
		b.wantErr(b.locker.Unlock(b.Context(), job, "c"), nil)
		b.wantErr(b.lockFor(b.locker, "c", 3, time.Hour), nil)
	})
}

// TestFencesOfHolders checks that each holder gets a higher fence.
func TestFencesOfHolders(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		last := int64(0)
		for _, token := range []string{"a", "b", "c"} {
			got, err := b.locker.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: token, Slots: 3, TTL: time.Hour, Fence: true})
			if err != nil || got.Fence <= last {
				b.Errorf("%s: %+v, %v", token, got, err)
			}
			last = got.Fence
		}
	})
}

// TestReaderWithoutExpiry checks that a reader without expiry keeps the lock when another reader
// has expired.
func TestReaderWithoutExpiry(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.wantErr(b.lockFor(b.locker, "a", Unlimited, NoExpiry), nil)
		b.wantErr(b.lockFor(b.locker, "b", Unlimited, time.Second), nil)
		time.Sleep(time.Hour)
		b.wantHolders("a")
		b.wantErr(b.lockFor(b.locker, "w", 0, time.Minute), ErrHeld)
	})
}

// TestWaitingWriterKeepsReadersOut checks that readers of any proxy do not overtake a waiting
// writer. The writer gets the lock when the last reader leaves, and the readers get it after the
// writer.
func TestWaitingWriterKeepsReadersOut(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		b.wantErr(b.lockFor(b.locker, "r1", Unlimited, time.Hour), nil)
		b.wantErr(b.lockFor(other, "r2", Unlimited, time.Hour), nil)
		var served []string
		b.startWaiter(b.Context(), b.locker, "w", NoWaitLimit, &served)
		time.Sleep(time.Second)
		b.wantErr(b.lockFor(other, "r3", Unlimited, time.Hour), ErrHeld)
		b.wantErr(b.lockFor(b.locker, "r3", Unlimited, time.Hour), ErrHeld)
		b.wantErr(other.Unlock(b.Context(), job, "r1"), nil)
		time.Sleep(10 * writerTTL)
		b.wantErr(b.lockFor(other, "r3", Unlimited, time.Hour), ErrHeld)
		b.wantErr(other.Unlock(b.Context(), job, "r2"), nil)
		b.wantErr(b.lockFor(other, "r3", Unlimited, time.Hour), ErrHeld)
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(served, []string{"w"}) {
			b.Errorf("served %q", served)
		}
		b.wantErr(other.Unlock(b.Context(), job, "w"), nil)
		b.wantErr(b.lockFor(other, "r3", Unlimited, time.Hour), nil)
	})
}

// TestWriterThatGivesUp checks that readers may join again when no writer waits any more.
func TestWriterThatGivesUp(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		b.wantErr(b.lockFor(b.locker, "r1", Unlimited, time.Hour), nil)
		var served []string
		b.startWaiter(b.Context(), b.locker, "w", 500*time.Millisecond, &served)
		time.Sleep(100 * time.Millisecond)
		b.wantErr(b.lockFor(other, "r2", Unlimited, time.Hour), ErrHeld)
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(served, []string{"w gave up"}) {
			b.Errorf("served %q", served)
		}
		b.wantErr(b.lockFor(other, "r2", Unlimited, time.Hour), nil)
	})
}

// TestReplyAfterWriter checks that a client may join as soon as a waiting writer has got its reply.
func TestReplyAfterWriter(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		for _, m := range b.masters {
			m.setLatency(50 * time.Millisecond)
		}
		for _, token := range []string{"r1", "r2"} {
			b.wantErr(b.lockFor(b.locker, token, Unlimited, time.Hour), nil)
		}
		w := newWaitingWriter(b.locker, job)
		w.announce(b.Context(), b.lockFor(b.locker, "w", 0, time.Hour))
		time.Sleep(writerPause / 2)
		go func() { b.wantErr(b.locker.Unlock(b.Context(), job, "r1"), nil) }()
		time.Sleep(time.Millisecond) // the removal of the record waits for this ballot
		w.end(false)
		b.wantErr(b.lockFor(other, "r3", Unlimited, time.Hour), nil)
		for _, m := range b.masters {
			m.hang()
		}
		start := time.Now()
		_, _ = b.locker.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: "w", TTL: time.Hour, Wait: 100 * time.Millisecond})
		if took := time.Since(start); took > 5*time.Second {
			b.Errorf("the reply without masters came after %v", took)
		}
		for _, m := range b.masters {
			m.resume()
		}
	})
}

// TestWritersOfOneProxy checks that a writer that gives up does not end the announcement of another
// writer of the same proxy.
func TestWritersOfOneProxy(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		b.wantErr(b.lockFor(b.locker, "r1", Unlimited, time.Hour), nil)
		refused := b.lockFor(b.locker, "w", 0, time.Hour)
		first, second := newWaitingWriter(b.locker, job), newWaitingWriter(b.locker, job)
		for _, w := range []*waitingWriter{first, second} {
			w.announce(b.Context(), refused)
			synctest.Wait()
		}
		first.end(false)
		b.wantErr(b.lockFor(other, "r2", Unlimited, time.Hour), ErrHeld)
		second.end(false)
		b.wantErr(b.lockFor(other, "r2", Unlimited, time.Hour), nil)
	})
}

// TestTokenOfAnotherKind checks that a client can extend and release its lock through a proxy with
// an outdated record. That proxy granted a lock of another kind with the same token before, and
// does not know that the earlier lock has ended.
func TestTokenOfAnotherKind(t *testing.T) {
	for _, kinds := range [][2]int{{Unlimited, 0}, {2, 0}, {0, Unlimited}, {0, 2}, {Unlimited, 2}} {
		for _, further := range []bool{false, true} {
			runInBubble(t, 3, func(b *fixture) {
				other := NewLocker(b.newCluster())
				b.wantErr(b.lockFor(b.locker, "t", kinds[0], time.Hour), nil)
				if further && kinds[0] != 0 {
					b.wantErr(b.lockFor(other, "u", kinds[0], time.Hour), nil)
					b.wantErr(other.Unlock(b.Context(), job, "u"), nil)
				}
				b.wantErr(other.Unlock(b.Context(), job, "t"), nil)
				b.wantErr(b.lockFor(other, "t", kinds[1], time.Hour), nil)
				_, err := b.locker.Extend(b.Context(), job, "t", 2*time.Hour)
				b.wantErr(err, nil)
				b.wantErr(b.locker.Unlock(b.Context(), job, "t"), nil)
				b.wantErr(b.locker.Unlock(b.Context(), job, "t"), ErrNotHeld)
				b.wantErr(b.lockFor(b.locker, "t", kinds[1], time.Hour), nil)
			})
		}
	}
}

// TestWaitingReaders checks that waiting readers get the lock together, and the next slot goes to
// the first waiter.
func TestWaitingReaders(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.mustLock("w", time.Hour)
		var granted atomic.Int32
		for _, token := range []string{"r1", "r2", "r3", "r4"} {
			go func() {
				_, err := b.locker.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: token, Slots: 3, TTL: time.Hour, Wait: NoWaitLimit})
				b.wantErr(err, nil)
				granted.Add(1)
			}()
			synctest.Wait()
		}
		b.wantErr(b.locker.Unlock(b.Context(), job, "w"), nil)
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if n := granted.Load(); n != 3 {
			b.Errorf("%d waiters were granted 3 slots", n)
		}
		b.wantErr(b.locker.Unlock(b.Context(), job, "r2"), nil)
		time.Sleep(50 * time.Millisecond)
		b.wantHolders("r1", "r3", "r4")
	})
}

// TestSeveralKeysWithHolders checks that a request for several keys, of which one has holders, gets
// none of them, and waits until the last holder leaves.
func TestSeveralKeysWithHolders(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		free := Key{Name: "free"}
		lockBoth := func(wait time.Duration) error {
			_, err := b.locker.Lock(b.Context(), LockRequest{Keys: []Key{free, job}, Token: "both", TTL: time.Hour, Wait: wait})
			return err
		}
		for _, slots := range []int{Unlimited, 5} {
			for _, token := range []string{"h1", "h2"} {
				b.wantErr(b.lockFor(b.locker, token, slots, time.Hour), nil)
				b.wantErr(lockBoth(0), ErrHeld)
			}
			b.wantHolders("h1", "h2")
			if snapshots, err := b.locker.Read(b.Context(), []Key{free}); err != nil || snapshots[0].Present {
				b.Errorf("the free key: %+v, %v", snapshots, err)
			}
			granted := make(chan error, 1)
			go func() { granted <- lockBoth(NoWaitLimit) }()
			for _, token := range []string{"h1", "h2"} {
				time.Sleep(time.Second)
				if len(granted) > 0 {
					b.Fatalf("granted while %s holds a key: %v", token, <-granted)
				}
				b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
			}
			b.wantErr(<-granted, nil)
			b.wantErr(b.lockFor(b.locker, "h1", slots, time.Hour), ErrHeld)
			for _, key := range []Key{free, job} {
				b.wantErr(b.locker.Unlock(b.Context(), key, "both"), nil)
			}
		}
	})
}

// TestSeveralKeysAfterHolders checks that a request for several keys gets a key whose holders have
// expired without a release.
func TestSeveralKeysAfterHolders(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		free := Key{Name: "free"}
		for _, wait := range []time.Duration{0, NoWaitLimit} {
			b.wantErr(b.lockFor(other, "h1", Unlimited, time.Minute), nil)
			b.wantErr(b.lockFor(other, "h2", Unlimited, 2*time.Minute), nil)
			b.wantErr(b.lockFor(b.locker, "h3", Unlimited, time.Minute), nil)
			if wait == 0 {
				time.Sleep(2*time.Minute + time.Second)
			}
			start := time.Now()
			_, err := b.locker.Lock(b.Context(), LockRequest{Keys: []Key{free, job}, Token: "both", TTL: time.Hour, Wait: wait})
			b.wantErr(err, nil)
			if took := time.Since(start); took > 2*time.Minute+10*time.Second || wait != 0 && took < 2*time.Minute {
				b.Errorf("granted after %v", took)
			}
			for _, key := range []Key{free, job} {
				b.wantErr(b.locker.Unlock(b.Context(), key, "both"), nil)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// TestUndeliveredHolder checks that Withdraw removes one holder, and no other holder.
func TestUndeliveredHolder(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		var grants []GrantedLock
		for _, token := range []string{"a", "b", "c"} {
			got, err := b.locker.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: token, Slots: 3, TTL: time.Hour})
			b.wantErr(err, nil)
			grants = append(grants, got)
		}
		b.locker.Withdraw([]Key{job.OfHolder("a")}, grants[0])
		b.locker.Withdraw([]Key{job.OfHolder("c")}, grants[2])
		time.Sleep(time.Second)
		b.wantHolders("b")
		if _, err := b.locker.Extend(b.Context(), job, "b", 2*time.Hour); err != nil {
			b.Error(err)
		}
		b.locker.Withdraw([]Key{job.OfHolder("b")}, grants[1]) // it has a new version
		time.Sleep(time.Second)
		b.wantHolders("b")
	})
}

// TestJoinWithoutQuorum checks that a holder whose LOCK got an error is removed.
func TestJoinWithoutQuorum(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.wantErr(b.lockFor(b.locker, "a", Unlimited, time.Hour), nil)
		for _, token := range []string{"b", "c"} {
			b.masters[0].hang()
			b.masters[1].change(func(f *fakeMaster) { f.loseReplies = 2 })
			b.masters[2].change(func(f *fakeMaster) { f.loseReplies = 2 })
			err := b.lockFor(b.locker, token, Unlimited, time.Hour)
			b.masters[0].resume()
			time.Sleep(10 * time.Second)
			if err == nil {
				b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
			}
			b.wantHolders("a")
		}
	})
}

// TestRemoveHolders checks that Remove takes a lock from one holder or from all.
func TestRemoveHolders(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		remove := func(key Key, want bool) {
			b.Helper()
			if got, err := b.locker.Remove(b.Context(), key); got != want || err != nil {
				b.Errorf("%+v: %v, %v", key, got, err)
			}
		}
		for _, token := range []string{"a", "b", "c"} {
			b.wantErr(b.lockFor(b.locker, token, Unlimited, time.Hour), nil)
		}
		remove(job.OfHolder("d"), false)
		remove(job.OfHolder("b"), true)
		b.wantHolders("a", "c")
		remove(job, true)
		b.wantHolders()
		remove(job, false)
		b.wantErr(b.lockFor(b.locker, "w", 0, time.Hour), nil)
		remove(job.OfHolder("b"), false)
		remove(job.OfHolder("w"), true)
		b.wantErr(b.lockFor(b.locker, "w", 0, time.Hour), nil)
	})
}

// TestHoldersOfTaggedKeys checks locks with several holders that share a cell with other keys.
func TestHoldersOfTaggedKeys(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		c := b.connect(Options{Masters: []string{"redis://m0:1", "redis://m1:1", "redis://m2:1"}, Tagged: true})
		l := NewLocker(c)
		key, neighbour := Key{Name: "a:{T}", Tag: "T"}, Key{Name: "T"}
		lock := func(key Key, token string, slots int, ttl time.Duration) error {
			_, err := l.Lock(b.Context(), LockRequest{Keys: []Key{key}, Token: token, Slots: slots, TTL: ttl})
			return err
		}
		b.wantErr(lock(neighbour, "s1", 2, time.Minute), nil)
		b.wantErr(lock(key, "r1", Unlimited, time.Minute), nil)
		b.wantErr(lock(neighbour, "s2", 2, 2*time.Minute), nil)
		b.wantErr(lock(key, "r2", Unlimited, 2*time.Minute), nil)
		b.wantErr(lock(neighbour, "s3", 2, time.Minute), ErrHeld)
		b.wantErr(lock(key, "w", 0, time.Minute), ErrHeld)
		if _, err := l.Extend(b.Context(), key, "r1", 3*time.Minute); err != nil {
			b.Error(err)
		}
		time.Sleep(2*time.Minute + time.Second)
		b.wantErr(lock(key, "w", 0, time.Minute), ErrHeld)
		b.wantErr(lock(neighbour, "w", 0, time.Minute), nil)
		b.wantErr(l.Unlock(b.Context(), key, "r2"), ErrNotHeld)
		b.wantErr(l.Unlock(b.Context(), key, "r1"), nil)
		b.wantErr(lock(key, "w", 0, time.Minute), nil)
		b.wantErr(l.Unlock(b.Context(), neighbour, "w"), nil)
		b.wantErr(l.Unlock(b.Context(), key, "w"), nil)
	})
}

// TestHolderAndTaggedKey checks that the only holder of a lock keeps, extends and releases the lock
// after another proxy has put a key with a tag into the same cell.
func TestHolderAndTaggedKey(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		options := Options{Masters: []string{"redis://m0:1", "redis://m1:1", "redis://m2:1"}, Tagged: true}
		first, second := NewLocker(b.connect(options)), NewLocker(b.connect(options))
		lone, tagged := Key{Name: "T"}, Key{Name: "a:{T}", Tag: "T"}
		lock := func(l *Locker, key Key, token string, slots int) error {
			_, err := l.Lock(b.Context(), LockRequest{Keys: []Key{key}, Token: token, Slots: slots, TTL: time.Minute})
			return err
		}
		for _, token := range []string{"r1", "r2"} {
			b.wantErr(lock(first, lone, token, Unlimited), nil)
			b.wantErr(lock(second, tagged, "t", 0), nil)
			if token == "r1" {
				_, err := first.Extend(b.Context(), lone, token, 2*time.Minute)
				b.wantErr(err, nil)
			}
			b.wantErr(first.Unlock(b.Context(), lone, token), nil)
			b.wantErr(lock(second, lone, "w", 0), nil)
			b.wantErr(second.Unlock(b.Context(), lone, "w"), nil)
			b.wantErr(second.Unlock(b.Context(), tagged, "t"), nil)
		}
	})
}

// TestHoldersExceedTag checks that a LOCK that exceeds the size of the keys of a tag is refused,
// and does not disturb a client whose command runs at the same time.
func TestHoldersExceedTag(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		l := NewLocker(b.connect(Options{Masters: []string{"redis://m0:1", "redis://m1:1", "redis://m2:1"}, Tagged: true}))
		for _, m := range b.masters {
			m.setLatency(10 * time.Millisecond)
		}
		shared, large := Key{Name: "a:{T}", Tag: "T"}, Key{Name: "b:{T}", Tag: "T"}
		lock := func(key Key, token string, slots int) error {
			_, err := l.Lock(b.Context(), LockRequest{Keys: []Key{key}, Token: token, Slots: slots, TTL: time.Hour})
			return err
		}
		b.wantErr(lock(large, strings.Repeat("x", keygroup.MaxBytes*3/4), 0), nil)
		for _, token := range []string{"r1", "r2"} {
			b.wantErr(lock(shared, token, Unlimited), nil)
		}
		var commands sync.WaitGroup
		commands.Go(func() { b.wantErr(lock(shared, "r3", Unlimited), nil) })
		time.Sleep(time.Millisecond) // the next changes wait for this ballot
		commands.Go(func() {
			b.wantErr(lock(shared, strings.Repeat("y", keygroup.MaxBytes/2), Unlimited), keygroup.ErrTooLarge)
		})
		commands.Go(func() { b.wantErr(l.Unlock(b.Context(), shared, "r1"), nil) })
		commands.Go(func() { b.wantErr(lock(shared, "r4", Unlimited), nil) })
		commands.Wait()
		for _, token := range []string{"r2", "r3", "r4"} {
			b.wantErr(l.Unlock(b.Context(), shared, token), nil)
		}
	})
}

// TestTooManyHolders checks that a token that exceeds the size of the holders is refused, and
// disturbs no other client.
func TestTooManyHolders(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.wantErr(b.lockFor(b.locker, "a", Unlimited, time.Hour), nil)
		b.wantErr(b.lockFor(b.locker, strings.Repeat("x", keygroup.MaxBytes), Unlimited, time.Hour), keygroup.ErrHoldersTooLarge)
		b.wantErr(b.lockFor(b.locker, "b", Unlimited, time.Hour), nil)
		b.wantHolders("a", "b")
	})
}
