package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const token, rival = "me", "you"

var job = Key{Name: "job"}

// bench is a cluster over fake masters, within a synctest bubble.
type bench struct {
	*testing.T
	masters []*fakeMaster
	cluster *Cluster
	locker  *Locker
	// guarded has the clusters guard their masters; they make a fresh start, then.
	guarded bool
	// links are those of all clusters so far, in the order of their masters.
	links []*fakeLink
}

// inBubble runs a test on n fake masters, in fake time.
func inBubble(t *testing.T, n int, test func(b *bench)) {
	t.Helper()
	runInBubble(t, n, false, test)
}

// inGuardedBubble is inBubble with the masters guarded.
func inGuardedBubble(t *testing.T, n int, test func(b *bench)) {
	t.Helper()
	runInBubble(t, n, true, test)
}

func runInBubble(t *testing.T, n int, guarded bool, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, guarded: guarded}
		for range n {
			b.masters = append(b.masters, newFakeMaster())
		}
		b.cluster = b.newCluster()
		b.locker = NewLocker(b.cluster)
		test(b)
	})
}

// newCluster connects another proxy to the same masters.
func (b *bench) newCluster() *Cluster { return b.newClusterWith(Options{}) }

// newClusterWith takes all but the masters from opts.
func (b *bench) newClusterWith(opts Options) *Cluster {
	opts.Rand = func() float64 { return 0.5 }
	for i := range b.masters {
		opts.Masters = append(opts.Masters, fmt.Sprintf("redis://m%d:6379", i))
	}
	return b.connect(opts)
}

// connect makes a cluster over all the fakes, which ends with the test.
func (b *bench) connect(opts Options) *Cluster {
	var transports []transport
	for _, m := range b.masters {
		link := &fakeLink{fakeMaster: m}
		b.links, transports = append(b.links, link), append(transports, link)
	}
	opts.Unguarded, opts.FreshStart = !b.guarded, b.guarded
	opts.setDefaults()
	c := newCluster(opts, transports)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return c
}

func (b *bench) lock(token string, ttl time.Duration) (time.Duration, error) {
	return b.locker.Lock(b.Context(), LockRequest{Key: job, Token: token, TTL: ttl})
}

func (b *bench) mustLock(token string, ttl time.Duration) {
	b.Helper()
	if _, err := b.lock(token, ttl); err != nil {
		b.Fatalf("LOCK %s: %v", token, err)
	}
	synctest.Wait()
}

// expect tells what each master holds under the job, "" for nothing.
func (b *bench) expect(want ...string) {
	b.Helper()
	synctest.Wait()
	var got []string
	for _, m := range b.masters {
		got = append(got, m.holds(job.Name))
	}
	if !slices.Equal(got, want) {
		b.Errorf("masters hold %q, want %q", got, want)
	}
}

// plant puts a value on some masters, as another client would.
func (b *bench) plant(value string, ttl time.Duration, masters ...int) {
	for _, i := range masters {
		b.masters[i].set(func(f *fakeMaster) { f.keys[job] = fakeEntry{value, f.now().Add(ttl)} })
	}
}

func (b *bench) wantErr(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("got error %v, want %v", err, want)
	}
}

func TestLockUnlockExtend(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		validity, err := b.lock(token, 10*time.Second)
		b.wantErr(err, nil)
		if want := 10*time.Second - 100*time.Millisecond - 2*time.Millisecond; validity != want {
			b.Errorf("validity %v, want %v", validity, want)
		}
		b.expect(token, token, token, token, token)

		_, err = b.lock(rival, time.Second)
		b.wantErr(err, ErrHeld)
		b.wantErr(b.locker.Unlock(b.Context(), job, rival), ErrNotHeld)

		time.Sleep(6 * time.Second)
		_, err = b.locker.Extend(b.Context(), job, token, 10*time.Second)
		b.wantErr(err, nil)
		time.Sleep(6 * time.Second)
		b.expect(token, token, token, token, token)

		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.expect("", "", "", "", "")
		_, err = b.locker.Extend(b.Context(), job, token, time.Second)
		b.wantErr(err, ErrNotHeld)
	})
}

func TestTheSameNameInAnotherDatabaseIsAnotherLock(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.mustLock(token, time.Second)
		other := LockRequest{Key: Key{DB: 1, Name: job.Name}, Token: rival, TTL: time.Second}
		_, err := b.locker.Lock(b.Context(), other)
		b.wantErr(err, nil)
	})
}

func TestFailedLockIsUndoneOnlyWhereItWasApplied(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.plant(rival, time.Minute, 1, 2, 4)
		_, err := b.lock(token, time.Second)
		b.wantErr(err, ErrHeld)
		b.expect("", rival, rival, "", rival)
	})
}

// The same token again is refused, and the undo must not end the earlier hold.
func TestLockedAgainWithTheSameTokenStaysLocked(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.plant(token, time.Minute, 0, 1, 2)
		_, err := b.lock(token, time.Minute)
		b.wantErr(err, ErrHeld)
		b.expect(token, token, token, "", "")
	})
}

func TestNoQuorumNamesEachMasterAndLeavesNothing(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.masters[0].set(func(f *fakeMaster) { f.refuses = true })
		b.masters[2].hang()
		b.masters[4].set(func(f *fakeMaster) { f.loseReplies = 1 })
		start := time.Now()
		_, err := b.lock(token, time.Minute)
		var none *NoQuorumError
		if !errors.As(err, &none) || none.Answered != 2 {
			b.Fatalf("got %v, want a NoQuorumError with 2 answers", err)
		}
		const want = "2 of 5 masters answered, 3 needed: m0:6379: connection refused; m2:6379: no answer in time; m4:6379: the reply was lost"
		if err.Error() != want {
			b.Errorf("got  %q\nwant %q", err, want)
		}
		b.wantErr(err, errLostReply)
		if took := time.Since(start); took > DefaultMasterTimeout {
			b.Errorf("took %v, more than a master's timeout", took)
		}
		b.masters[2].wake()
		time.Sleep(3 * time.Second)
		b.expect("", "", "", "", "")
	})
}

// A stopped process does what is in its socket buffer once it goes on.
func TestLateSetIsUndone(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.masters[0].hang()
		b.masters[1].hang()
		_, err := b.lock(token, time.Hour)
		if err == nil {
			b.Fatal("granted by one master of three")
		}
		time.Sleep(10 * time.Second)
		b.masters[0].wake()
		b.masters[1].wake()
		time.Sleep(3 * time.Second)
		b.expect("", "", "")
	})
}

// A client that asks again for the lock it holds, while the masters are out of
// reach, must not lose it by the undo of the second try.
func TestUndoOfAnUnknownSetSparesAnEarlierHold(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.mustLock(token, time.Hour)
		time.Sleep(time.Minute)
		for _, m := range b.masters {
			m.set(func(f *fakeMaster) { f.loseReplies = 1 })
		}
		if _, err := b.lock(token, time.Hour); err == nil {
			b.Fatal("granted without an answer")
		}
		time.Sleep(3 * time.Second)
		b.expect(token, token, token)
	})
}

func TestCallerWhoLeavesHoldsNothing(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		for _, m := range b.masters {
			m.slow(10 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Millisecond)
		defer cancel()
		_, err := b.locker.Lock(ctx, LockRequest{Key: job, Token: token, TTL: time.Hour})
		b.wantErr(err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		b.expect("", "", "")
	})
}

// What waits behind a batch in flight when its caller leaves is never sent.
func TestOperationOfACallerWhoLeftIsDroppedUnsent(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		b.masters[0].slow(50 * time.Millisecond)
		go func() { _, _ = b.cluster.Read(b.Context(), job) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(b.Context(), time.Millisecond)
		defer cancel()
		_, err := b.cluster.Commit(ctx, Acquire(job, token, time.Hour))
		b.wantErr(err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		b.masters[0].set(func(f *fakeMaster) {
			if len(f.log) != 1 {
				b.Errorf("the master was sent %q, want only the read", f.log)
			}
		})
	})
}

func TestGrantWithoutValidityIsNone(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		for _, m := range b.masters {
			m.slow(60 * time.Millisecond)
		}
		_, err := b.lock(token, 60*time.Millisecond)
		b.wantErr(err, ErrHeld)
		time.Sleep(time.Second)
		b.expect("", "", "")
	})
}

func TestMinorityOfHungMastersCostsNothing(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.masters[1].hang()
		b.masters[3].hang()
		start := time.Now()
		for range 3 {
			b.mustLock(token, time.Second)
			b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		}
		if took := time.Since(start); took != 0 {
			b.Errorf("took %v, want no wait at all", took)
		}
		b.masters[1].wake()
		b.masters[3].wake()
	})
}

func TestReleaseReachesAMasterThatWasDown(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.mustLock(token, time.Hour)
		b.masters[2].set(func(f *fakeMaster) { f.refuses = true })
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.expect("", "", token)
		b.masters[2].set(func(f *fakeMaster) { f.refuses = false })
		time.Sleep(3 * time.Second)
		b.expect("", "", "")
	})
}

// Two answered, one of them held it, and the silent one may be the other half of
// that majority: released all the same, since no majority can hold it any more.
func TestReleaseWithoutAMajorityOfYes(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.plant(token, time.Hour, 0, 1)
		b.masters[0].set(func(f *fakeMaster) { f.refuses = true })
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
	})
}

func TestUnknownScriptIsSentWhole(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.mustLock(token, time.Hour)
		for _, m := range b.masters {
			m.set(func(f *fakeMaster) { f.forgetful = 1 })
		}
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.expect("", "", "")
	})
}

func TestExtendRepairsBesideAMajority(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.plant(token, time.Second, 1, 2, 3)
		b.plant(rival, time.Hour, 4)
		_, err := b.locker.Extend(b.Context(), job, token, time.Minute)
		b.wantErr(err, nil)
		b.expect("", token, token, token, rival)
		b.mended()
		b.expect(token, token, token, token, rival)
		time.Sleep(time.Minute)
		b.expect("", "", "", "", rival)
	})
}

func TestExtendNeverRevives(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.plant(token, time.Hour, 1, 2)
		_, err := b.locker.Extend(b.Context(), job, token, time.Minute)
		b.wantErr(err, ErrNotHeld)
		b.expect("", token, token, "", "")
	})
}

// mended waits until repairs are made that were begun by now.
func (b *bench) mended() { time.Sleep(b.cluster.settling + 50*time.Millisecond) }

// A repair does not outlive a release that comes in the meantime.
func TestRepairDoesNotOutliveARelease(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.plant(token, time.Hour, 0, 1)
		b.masters[2].slow(20 * time.Millisecond)
		_, err := b.locker.Extend(b.Context(), job, token, time.Minute)
		b.wantErr(err, nil)
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.mended()
		b.expect("", "", "")
	})
}

// Nor does it outlive a release that another proxy was asked for, and that it overtook.
func TestRepairDoesNotOutliveAReleaseElsewhere(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		elsewhere := NewLocker(b.newCluster())
		b.plant(token, time.Hour, 0, 1, 2)
		b.masters[3].slow(20 * time.Millisecond)
		b.masters[4].slow(20 * time.Millisecond)
		_, err := b.locker.Extend(b.Context(), job, token, time.Minute)
		b.wantErr(err, nil)
		time.Sleep(5 * time.Millisecond)
		b.masters[0].hang()
		b.wantErr(elsewhere.Unlock(b.Context(), job, token), nil)
		b.mended()
		b.masters[0].wake()
		b.expect("", "", "", "", "")
	})
}

// A lock that was released never stands on a majority again, not even where a repair was under way and a master that
// may still hold it does not answer.
func TestRepairOfAReleasedLockShowsNowhere(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		elsewhere := NewLocker(b.newCluster())
		b.plant(token, time.Hour, 0, 1, 2)
		_, err := b.locker.Extend(b.Context(), job, token, time.Minute)
		b.wantErr(err, nil)
		b.masters[0].hang()
		b.wantErr(elsewhere.Unlock(b.Context(), job, token), nil)
		for range 200 {
			held, err := b.cluster.Read(b.Context(), job)
			if err != nil || held.Held {
				b.Fatalf("after its release: %+v, %v", held, err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// The offer of an earlier repair that is withdrawn does not make a later one come too soon, nor does it keep it away.
func TestRepairsInARow(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.plant(token, time.Hour, 0, 1, 2)
		for range 4 {
			_, err := b.locker.Extend(b.Context(), job, token, time.Minute)
			b.wantErr(err, nil)
			time.Sleep(b.cluster.settling / 3)
		}
		b.expect(token, token, token, token, token)
	})
}

// A master that another takes the key on meanwhile does not get it.
func TestRepairDoesNotOverwrite(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.plant(token, time.Hour, 0, 1)
		_, err := b.locker.Extend(b.Context(), job, token, time.Minute)
		b.wantErr(err, nil)
		time.Sleep(10 * time.Millisecond)
		b.plant(rival, time.Hour, 2)
		b.mended()
		b.expect(token, token, rival)
	})
}

// A repair is made where a majority holds the lock without it.
func TestRepairStays(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		b.plant(token, time.Hour, 0, 1, 2)
		_, err := b.locker.Extend(b.Context(), job, token, time.Minute)
		b.wantErr(err, nil)
		b.mended()
		b.expect(token, token, token, token, token)
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.expect("", "", "", "", "")
	})
}

func TestRead(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		read := func() Holding {
			h, err := b.cluster.Read(b.Context(), job)
			b.wantErr(err, nil)
			return h
		}
		if h := read(); h != (Holding{Free: true}) {
			b.Errorf("nothing is held: got %+v", h)
		}
		b.plant(token, 10*time.Second, 0)
		b.plant(token, 30*time.Second, 1)
		if h := read(); h.Held || !h.Free {
			b.Errorf("two of five: got %+v", h)
		}
		b.plant(token, 20*time.Second, 2)
		b.plant(token, 30*time.Second, 4)
		b.masters[4].slow(20 * time.Millisecond)
		if h := read(); h != (Holding{Held: true, Value: token, Left: 20 * time.Second}) {
			b.Errorf("the slowest has more time than one of the majority: got %+v", h)
		}
		time.Sleep(20 * time.Millisecond)
		b.masters[4].set(func(f *fakeMaster) { delete(f.keys, job) })
		b.plant(token, 10*time.Second, 0)
		b.plant(token, 20*time.Second, 2)
		b.plant(rival, time.Hour, 3)
		if h := read(); h != (Holding{Held: true, Value: token, Left: 10 * time.Second}) {
			b.Errorf("a majority holds it for 10 s: got %+v", h)
		}
	})
}

func TestMasterThatIsDownIsProbedSparingly(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		down := b.masters[0]
		down.set(func(f *fakeMaster) { f.refuses = true })
		b.mustLock(token, time.Hour) // notices
		down.set(func(f *fakeMaster) { f.contacts = 0 })
		time.Sleep(time.Minute)
		down.set(func(f *fakeMaster) {
			if f.contacts < 120 || f.contacts > 240 {
				b.Errorf("%d probes in a minute, want one every quarter to half second", f.contacts)
			}
		})
		if s := b.cluster.Status()[0]; s.Err == nil || !strings.Contains(causeText(s.Err), "refused") {
			b.Errorf("status %+v, want it down and why", s)
		}
		down.set(func(f *fakeMaster) { f.refuses = false })
		time.Sleep(longestPause)
		if s := b.cluster.Status()[0]; s.Err != nil {
			b.Errorf("status %+v, want it up", s)
		}
	})
}

func TestIdleMasterThatDiesIsNoticedBeforeALockMeetsIt(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.masters[0].hang()
		time.Sleep(2*heartbeat + DefaultMasterTimeout)
		if s := b.cluster.Status()[0]; s.Err == nil {
			b.Error("nobody noticed")
		}
		b.masters[0].wake()
	})
}

func TestStoppedClusterSendsWhatIsQueuedAndRefusesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, masters: []*fakeMaster{newFakeMaster(), newFakeMaster(), newFakeMaster()}}
		opts := Options{Masters: []string{"redis://a", "redis://b", "redis://c"}, Unguarded: true}
		opts.setDefaults()
		c := newCluster(opts, []transport{b.masters[0], b.masters[1], b.masters[2]})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { _ = c.Run(ctx); close(ended) }()
		synctest.Wait()
		for _, m := range b.masters {
			m.slow(10 * time.Millisecond)
		}
		go func() { _, _ = c.Commit(t.Context(), Acquire(job, token, time.Hour)) }()
		synctest.Wait()
		go func() { _, _ = c.Commit(t.Context(), Release(job, token)) }()
		synctest.Wait()
		cancel()
		<-ended
		b.expect("", "", "")
		_, err := c.Commit(t.Context(), Acquire(job, token, time.Hour))
		b.wantErr(err, ErrClosed)
	})
}
