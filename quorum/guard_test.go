package quorum

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// bothWays runs a test once unguarded, where the second of two clients must be
// granted what the first still holds, or the test shows nothing, and once guarded,
// where that must not be.
func bothWays(t *testing.T, n int, scenario func(b *bench) (grantedTwice bool)) {
	for _, guarded := range []bool{false, true} {
		t.Run(map[bool]string{false: "unguarded", true: "guarded"}[guarded], func(t *testing.T) {
			runInBubble(t, n, guarded, func(b *bench) {
				b.settle()
				if twice := scenario(b); twice == guarded {
					b.Errorf("guarded: %v, granted twice: %v", guarded, twice)
				}
			})
		})
	}
}

// settle waits until all masters vote.
func (b *bench) settle() {
	b.Helper()
	b.settles(b.cluster, 5*time.Second)
}

func (b *bench) settles(c *Cluster, patience time.Duration) {
	b.Helper()
	for end := time.Now().Add(patience); up(c.electors) < len(c.electors); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("not all masters vote after %v: %s", patience, b.standings(c))
		}
	}
	synctest.Wait()
}

func (b *bench) standings(c *Cluster) string {
	var all []string
	for _, s := range c.Status() {
		text := s.Standing.String()
		if s.Quarantine != nil {
			text += " (" + s.Quarantine.Error() + ")"
		}
		if s.Err != nil {
			text += " (" + causeText(s.Err) + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// holdOnFirst has the lock granted by a bare majority, the first masters: the others
// hold nothing.
func (b *bench) holdOnFirst(ttl time.Duration) {
	b.Helper()
	n := len(b.masters)
	for _, m := range b.masters[Majority(n):] {
		m.slow(20 * time.Millisecond)
	}
	b.mustLock(token, ttl)
	time.Sleep(50 * time.Millisecond)
	for _, m := range b.masters[Majority(n):] {
		m.set(func(f *fakeMaster) { delete(f.keys, job) })
		m.slow(0)
	}
}

// notice has broken connections noticed, and made anew.
func (b *bench) notice() {
	b.Helper()
	_, err := b.cluster.Read(b.Context(), job)
	b.wantErr(err, nil)
	time.Sleep(100 * time.Millisecond)
}

// stolen reports whether another client gets the lock at once.
func (b *bench) stolen() bool {
	b.Helper()
	_, err := b.lock(rival, time.Hour)
	var none *NoQuorumError
	if err != nil && !errors.Is(err, ErrHeld) && !errors.As(err, &none) {
		b.Errorf("got %v", err)
	}
	return err == nil
}

// TestMasterThatForgotDoesNotVote: each way to forget one lock of three, and somebody
// asks for it at once.
func TestMasterThatForgotDoesNotVote(t *testing.T) {
	for name, forget := range map[string]func(f *fakeMaster){
		"restarted empty":                       func(f *fakeMaster) { f.restart(snapshot{}) },
		"flushed":                               func(f *fakeMaster) { f.flush() },
		"its database was flushed":              func(f *fakeMaster) { f.flushDB(0) },
		"took over the data of an empty server": func(f *fakeMaster) { f.load(snapshot{}) },
		"its clock stepped beyond the TTL":      func(f *fakeMaster) { f.step(2 * time.Hour) },
		"restarted with everysec and one gone":  func(f *fakeMaster) { forgetOnlyTheLock(f) },
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, 5, func(b *bench) bool {
				b.holdOnFirst(time.Hour)
				forget(b.masters[2])
				b.notice()
				return b.stolen()
			})
		})
	}
}

// forgetOnlyTheLock restarts a master with all its data but the lock.
func forgetOnlyTheLock(f *fakeMaster) {
	all := f.save()
	delete(all.keys, job)
	f.restart(all)
}

// TestMasterRestartedFromAnOlderSnapshot has the marker of the snapshot stand, but of
// an earlier life.
func TestMasterRestartedFromAnOlderSnapshot(t *testing.T) {
	bothWays(t, 5, func(b *bench) bool {
		old := b.masters[2].save()
		b.holdOnFirst(time.Hour)
		b.masters[2].restart(old)
		b.notice()
		return b.stolen()
	})
}

// TestMasterThatWasAReplicaOfAnother: its connections and its run_id stand, and it has
// the other master's data, marker and all.
func TestMasterThatWasAReplicaOfAnother(t *testing.T) {
	bothWays(t, 5, func(b *bench) bool {
		b.holdOnFirst(time.Hour)
		b.masters[2].load(b.masters[4].save())
		return b.stolen()
	})
}

func TestFlushOfAnotherDatabaseIsNoticed(t *testing.T) {
	bothWays(t, 5, func(b *bench) bool {
		key := Key{DB: 3, Name: "job"}
		_, err := b.cluster.Commit(b.Context(), Acquire(key, token, time.Hour))
		b.wantErr(err, nil)
		synctest.Wait()
		for i, m := range b.masters {
			if i < 3 {
				m.flushDB(3)
			}
		}
		_, err = b.cluster.Commit(b.Context(), Acquire(key, rival, time.Hour))
		return err == nil
	})
}

// TestSwappedDatabasesAreNoticed: each has a marker of its own.
func TestSwappedDatabasesAreNoticed(t *testing.T) {
	bothWays(t, 3, func(b *bench) bool {
		b.mustLock(token, time.Hour)
		_, err := b.cluster.Commit(b.Context(), Acquire(Key{DB: 1, Name: "x"}, token, time.Hour))
		b.wantErr(err, nil)
		synctest.Wait()
		for _, m := range b.masters {
			m.set(swapDatabases)
		}
		return b.stolen()
	})
}

func swapDatabases(f *fakeMaster) {
	swapped := map[Key]fakeEntry{}
	for key, e := range f.keys {
		if key.DB < 2 {
			key.DB = 1 - key.DB
		}
		swapped[key] = e
	}
	f.keys = swapped
}

// TestMasterThatForgotCatchesUp: within two seconds it votes again, and holds what it
// had agreed to, for as long, in all databases.
func TestMasterThatForgotCatchesUp(t *testing.T) {
	for name, forget := range map[string]func(f *fakeMaster){
		"restarted empty": func(f *fakeMaster) { f.restart(snapshot{}) },
		"flushed":         func(f *fakeMaster) { f.flush() },
	} {
		t.Run(name, func(t *testing.T) {
			inGuardedBubble(t, 5, func(b *bench) {
				b.settle()
				b.holdOnFirst(time.Hour)
				other, endless := Key{DB: 7, Name: "other"}, Key{Name: "endless"}
				for key, ttl := range map[Key]time.Duration{other: time.Minute, endless: Endless} {
					_, err := b.cluster.Commit(b.Context(), Acquire(key, token, ttl))
					b.wantErr(err, nil)
				}
				time.Sleep(time.Second)
				forget(b.masters[2])
				time.Sleep(1200 * time.Millisecond)
				b.settles(b.cluster, 800*time.Millisecond)
				b.expect(token, token, token, "", "")
				b.masters[2].set(func(f *fakeMaster) {
					for key, least := range map[Key]time.Duration{job: 59 * time.Minute, other: 55 * time.Second} {
						if e := f.look(key); e.Value != token || e.Left < least || e.Left > least+time.Minute {
							b.Errorf("%v: got %+v", key, e)
						}
					}
					if e := f.look(endless); e != (Entry{Present: true, Value: token, Left: Endless}) {
						b.Errorf("%v: got %+v", endless, e)
					}
				})
				// The two others that hold it may fail now: the third remembers.
				b.masters[0].hang()
				b.masters[1].hang()
				if b.stolen() {
					b.Error("granted twice")
				}
				b.masters[0].wake()
				b.masters[1].wake()
			})
		})
	}
}

// TestClockSetBackKeepsNoLockLonger: the master's own remaining time is wrong by the step, and is put right by the others.
func TestClockSetBackKeepsNoLockLonger(t *testing.T) {
	inGuardedBubble(t, 5, func(b *bench) {
		b.settle()
		b.mustLock(token, time.Minute)
		b.masters[2].step(-time.Hour)
		b.notice()
		b.settle()
		time.Sleep(time.Minute)
		b.expect("", "", "", "", "")
	})
}

// TestReleasedDuringTheCatchUpDoesNotStay: it is copied by the first pass.
func TestReleasedDuringTheCatchUpDoesNotStay(t *testing.T) {
	inGuardedBubble(t, 5, func(b *bench) {
		b.settle()
		b.holdOnFirst(time.Hour)
		b.masters[2].restart(snapshot{})
		for b.masters[2].holds("job") == "" {
			time.Sleep(time.Millisecond)
		}
		b.masters[2].set(func(f *fakeMaster) { // the release does not reach it
			f.log = nil
		})
		for _, i := range []int{0, 1} {
			b.masters[i].set(func(f *fakeMaster) { delete(f.keys, job) })
		}
		b.settle()
		b.expect("", "", "", "", "")
	})
}

// TestContendedKeyIsChosenByMajorityOnly: while the sources do not agree and none has a
// majority, nothing is chosen: the winner may be any of them.
func TestContendedKeyIsChosenByMajorityOnly(t *testing.T) {
	inGuardedBubble(t, 5, func(b *bench) {
		b.settle()
		_, err := b.cluster.Commit(b.Context(), Acquire(Key{Name: "another"}, token, time.Hour))
		b.wantErr(err, nil)
		b.plant(token, time.Hour, 0, 1)
		b.plant(rival, time.Hour, 3, 4)
		b.masters[2].restart(snapshot{})
		time.Sleep(10 * time.Second)
		if s := b.cluster.Status()[2]; s.Standing != Quarantined || b.masters[2].holds("job") != "" {
			b.Errorf("it is %v and holds %q", s.Standing, b.masters[2].holds("job"))
		}
		b.masters[3].set(func(f *fakeMaster) { delete(f.keys, job) })
		b.masters[4].set(func(f *fakeMaster) { delete(f.keys, job) })
		b.settle()
		b.expect(token, token, token, "", "")
	})
}

// TestGrantsWhileInQuarantineStay: a master in quarantine learns the new locks, as if it
// voted.
func TestGrantsWhileInQuarantineStay(t *testing.T) {
	inGuardedBubble(t, 5, func(b *bench) {
		b.settle()
		b.masters[2].flush()
		b.mustLock(token, time.Hour)
		b.expect(token, token, token, token, token)
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.expect("", "", "", "", "")
	})
}

// TestLostRoundIsUndoneInQuarantine, too, although the vote did not count.
func TestLostRoundIsUndoneInQuarantine(t *testing.T) {
	inGuardedBubble(t, 5, func(b *bench) {
		b.settle()
		b.plant(rival, time.Hour, 0, 1, 3)
		b.masters[2].flush()
		_, err := b.lock(token, time.Hour)
		b.wantErr(err, ErrHeld)
		b.expect(rival, rival, "", rival, "")
	})
}

// TestExtendRepairsAMasterInQuarantine, never as a vote.
func TestExtendRepairsAMasterInQuarantine(t *testing.T) {
	inGuardedBubble(t, 5, func(b *bench) {
		b.settle()
		b.mustLock(token, time.Minute)
		b.masters[2].restart(snapshot{})
		b.notice()
		if b.cluster.Status()[2].Standing != Quarantined {
			b.Fatal("it is not in quarantine")
		}
		b.masters[2].set(func(f *fakeMaster) { // so that nobody copies to it
			f.put(Key{Name: claimKey}, Entry{Present: true, Value: "another proxy", Left: time.Hour})
		})
		_, err := b.locker.Extend(b.Context(), job, token, time.Hour)
		b.wantErr(err, nil)
		b.expect(token, token, "", token, token)
		b.mended()
		if b.cluster.Status()[2].Standing != Quarantined {
			b.Fatal("it is not in quarantine any more")
		}
		b.expect(token, token, token, token, token)
	})
}

// TestTwoOfFiveInQuarantine: they do not keep locks from being had, nor each other from
// catching up.
func TestTwoOfFiveInQuarantine(t *testing.T) {
	inGuardedBubble(t, 5, func(b *bench) {
		b.settle()
		b.holdOnFirst(time.Hour)
		b.masters[1].restart(snapshot{})
		b.masters[2].restart(snapshot{})
		b.notice()
		if b.stolen() {
			b.Error("granted twice")
		}
		b.settle()
		b.expect(token, token, token, "", "")
	})
}

// TestAllRestarted: no lock until the longest lease in use is over, then locks again,
// without anyone's help, and an error that says so.
func TestAllRestarted(t *testing.T) {
	const ttl = 30 * time.Second
	bothWays(t, 5, func(b *bench) bool {
		b.mustLock(token, ttl)
		time.Sleep(1500 * time.Millisecond)
		for _, m := range b.masters {
			m.restart(snapshot{})
		}
		restarted := time.Now()
		time.Sleep(time.Second)
		if !b.guarded {
			return b.stolen()
		}
		_, err := b.lock(rival, ttl)
		left := time.Duration(0)
		for _, s := range b.cluster.Status() {
			left = max(left, s.Quarantine.Left())
		}
		want := fmt.Sprintf("0 of 5 masters vote: 5 restarted without proof of their data, ready in %d s", seconds(left))
		if err == nil || err.Error() != want {
			b.Fatalf("got  %v\nwant %s", err, want)
		}
		announced := time.Now().Add(left)
		time.Sleep(time.Until(restarted.Add(leaseWait(ttl) - time.Millisecond)))
		if b.stolen() {
			return true
		}
		time.Sleep(time.Until(announced) + left/20)
		if !b.stolen() {
			b.Errorf("no lock %v after the restart: %s", time.Since(restarted), b.standings(b.cluster))
		}
		return false
	})
}

// TestEndlessLockCountsAsTheLimit where all masters restart.
func TestEndlessLockCountsAsTheLimit(t *testing.T) {
	inGuardedBubble(t, 3, func(b *bench) {
		b.cluster = b.newClusterWith(Options{MaxTTL: time.Minute})
		b.locker = NewLocker(b.cluster)
		b.settle()
		_, err := b.lock(token, Endless)
		b.wantErr(err, nil)
		for _, m := range b.masters {
			m.restart(snapshot{})
		}
		time.Sleep(59 * time.Second)
		if b.stolen() {
			b.Error("granted within a minute")
		}
		time.Sleep(5 * time.Second)
		if !b.stolen() {
			b.Errorf("not granted after it: %s", b.standings(b.cluster))
		}
	})
}

// TestDurableMasterVotesAgainAtOnce, with its locks: it proves that it forgot nothing.
func TestDurableMasterVotesAgainAtOnce(t *testing.T) {
	inGuardedBubble(t, 3, func(b *bench) {
		for _, m := range b.masters {
			m.set(func(f *fakeMaster) { f.fsync = "always" })
		}
		b.settle()
		b.masters[2].flush() // to have it marked as durable
		time.Sleep(2 * time.Second)
		b.settle()
		b.mustLock(token, time.Hour)
		b.masters[2].restart(b.masters[2].save())
		restarted := time.Now()
		time.Sleep(10 * time.Millisecond)
		b.settle()
		if took := time.Since(restarted); took >= grace {
			b.Errorf("it took %v", took)
		}
		b.expect(token, token, token)
	})
}

// TestNewProxyTrustsMarkedMasters at once; without a fresh start it trusts no others.
func TestNewProxyTrustsMarkedMasters(t *testing.T) {
	inGuardedBubble(t, 3, func(b *bench) {
		b.settle()
		b.mustLock(token, time.Hour)
		began := time.Now()
		second := b.newCluster()
		b.settles(second, time.Second)
		if took := time.Since(began); took > 10*time.Millisecond {
			b.Errorf("it took %v", took)
		}
		_, err := second.Commit(b.Context(), Acquire(job, rival, time.Hour))
		b.wantErr(err, ErrHeld)
	})
}

// TestTwoProxiesSeeTheSameRestart and do the work once.
func TestTwoProxiesSeeTheSameRestart(t *testing.T) {
	inGuardedBubble(t, 5, func(b *bench) {
		b.settle()
		second := b.newCluster()
		b.settles(second, time.Second)
		b.holdOnFirst(time.Hour)
		for i := range 100 {
			_, err := b.cluster.Commit(b.Context(), Acquire(Key{Name: fmt.Sprint(i)}, token, time.Hour))
			b.wantErr(err, nil)
		}
		synctest.Wait()
		b.masters[2].restart(snapshot{})
		time.Sleep(1200 * time.Millisecond)
		b.settles(b.cluster, time.Second)
		b.settles(second, time.Second)
		b.masters[2].set(func(f *fakeMaster) {
			if f.filled != 101 {
				b.Errorf("%d keys were written, want each of 101 once", f.filled)
			}
		})
		if first, other := b.cluster.masters[2].guard.marker(), second.masters[2].guard.marker(); first != other {
			b.Errorf("the proxies know the markers %q and %q", first, other)
		}
		_, err := second.Commit(b.Context(), Acquire(job, rival, time.Hour))
		b.wantErr(err, ErrHeld)
	})
}

func TestFreshStart(t *testing.T) {
	fresh := func(b *bench, want bool) *Cluster {
		c := b.newCluster()
		time.Sleep(2 * time.Second)
		if got := up(c.masters) == len(c.masters); got != want {
			b.Errorf("all vote: %v, want %v: %s", got, want, b.standings(c))
		}
		return c
	}
	with := func(name string, before func(b *bench), want bool) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{T: t, guarded: true}
				for range 3 {
					b.masters = append(b.masters, newFakeMaster())
				}
				before(b)
				fresh(b, want)
			})
		})
	}
	with("all empty", func(*bench) {}, true)
	with("one holds a key", func(b *bench) { b.plant(token, time.Hour, 1) }, false)
	with("one cannot be reached", func(b *bench) { b.masters[1].set(func(f *fakeMaster) { f.refuses = true }) }, false)
	t.Run("never for masters seen before", func(t *testing.T) {
		inGuardedBubble(t, 3, func(b *bench) {
			b.settle()
			b.mustLock(token, time.Hour)
			for _, m := range b.masters {
				m.restart(snapshot{})
			}
			time.Sleep(10 * time.Second)
			if b.stolen() {
				b.Error("granted twice")
			}
		})
	})
	t.Run("not while another proxy has them in quarantine", func(t *testing.T) {
		inGuardedBubble(t, 3, func(b *bench) {
			b.settle()
			b.mustLock(token, time.Hour)
			for _, m := range b.masters {
				m.restart(snapshot{})
			}
			time.Sleep(time.Second)
			fresh(b, false)
		})
	})
}

// TestUnfitMasters are not asked at all.
func TestUnfitMasters(t *testing.T) {
	for name, c := range map[string]struct {
		make func(b *bench)
		why  string
	}{
		"replica":     {func(b *bench) { b.masters[1].set(func(f *fakeMaster) { f.role = "slave" }) }, whyReplica},
		"evicting":    {func(b *bench) { b.masters[1].set(func(f *fakeMaster) { f.policy = "allkeys-lru" }) }, whyPolicy("allkeys-lru")},
		"same server": {func(b *bench) { b.masters[1].set(func(f *fakeMaster) { f.twinOf = b.masters[0] }) }, whyTwin + "m0:6379"},
	} {
		t.Run(name, func(t *testing.T) {
			inGuardedBubble(t, 3, func(b *bench) {
				b.settle()
				c.make(b)
				time.Sleep(2 * heartbeat)
				s := b.cluster.Status()[1]
				if s.Standing != Unfit || s.Err == nil || s.Err.Error() != c.why {
					b.Errorf("got %v, %v, want unfit: %s", s.Standing, s.Err, c.why)
				}
				b.mustLock(token, time.Hour)
				b.expect(token, "", token)
			})
		})
	}
}

func TestEvictionPutsIntoQuarantine(t *testing.T) {
	inGuardedBubble(t, 3, func(b *bench) {
		b.settle()
		b.masters[1].set(func(f *fakeMaster) { f.evicted++ })
		for end := time.Now().Add(2 * heartbeat); up(b.cluster.masters) == 3; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				b.Fatal("nobody noticed")
			}
		}
		if s := b.cluster.Status()[1]; s.Standing != Quarantined || s.Quarantine.Reason() != "evicted" {
			b.Errorf("got %s", b.standings(b.cluster))
		}
		b.settle()
	})
}

// TestOurOwnClock: if the clocks of all masters move at once it was ours that did not.
func TestOurOwnClock(t *testing.T) {
	inGuardedBubble(t, 5, func(b *bench) {
		b.settle()
		markers := b.markers()
		for _, m := range b.masters {
			m.step(time.Hour)
		}
		_, err := b.lock(token, time.Minute)
		var none *NoQuorumError
		if !errors.As(err, &none) {
			b.Errorf("got %v, want no quorum: no vote of that batch counts", err)
		}
		time.Sleep(time.Second)
		b.settles(b.cluster, 10*time.Millisecond)
		if now := b.markers(); !slices.Equal(now, markers) {
			b.Error("a master was in quarantine")
		}
		b.mustLock(token, time.Minute)
	})
}

func (b *bench) markers() []string {
	var all []string
	for _, m := range b.masters {
		m.set(func(f *fakeMaster) { all = append(all, f.own(0, markerKey)) })
	}
	return all
}

// TestLateGrantIsNone: a round that took longer than the limit is abandoned, although its
// lease is not over.
func TestLateGrantIsNone(t *testing.T) {
	inGuardedBubble(t, 3, func(b *bench) {
		b.settle()
		b.mustLock(token, time.Hour)
		for _, m := range b.masters {
			m.slow(roundLimit + time.Millisecond)
		}
		_, err := b.cluster.Commit(b.Context(), Acquire(Key{Name: "late"}, token, time.Hour))
		b.wantErr(err, ErrHeld)
		time.Sleep(2 * time.Second) // until that is undone
		_, err = b.locker.Extend(b.Context(), job, token, time.Hour)
		if err == nil || err.Error() != "a majority of 3 masters agreed after 601 ms, 600 is the limit" {
			b.Errorf("a late extension: got %v", err)
		}
		time.Sleep(5 * time.Second)
		for _, m := range b.masters {
			if m.holds("late") != "" {
				b.Error("the late grant was not undone")
			}
		}
	})
}

// TestLeaseIsNotTakenFromWhatWasKnown: another proxy has just begun to use a longer TTL
// than this one knows of, when a master forgets.
func TestLeaseIsNotTakenFromWhatWasKnown(t *testing.T) {
	bothWays(t, 5, func(b *bench) bool {
		first := b.cluster
		second := b.newCluster()
		b.settles(second, time.Second)
		b.locker = NewLocker(second)
		b.holdOnFirst(time.Hour)
		b.masters[2].restart(snapshot{})
		b.cluster, b.locker = first, NewLocker(first)
		b.notice()
		return b.stolen()
	})
}

// TestRoundInFlightIsWaitedFor: the master voted and forgot at once, while the SETs of the
// same round are still on their way to the others. It must not catch up before.
func TestRoundInFlightIsWaitedFor(t *testing.T) {
	bothWays(t, 5, func(b *bench) bool {
		b.mustLock("warm", time.Hour)
		b.wantErr(b.locker.Unlock(b.Context(), job, "warm"), nil)
		far := b.newCluster()
		b.settles(far, time.Second)
		links := b.links[len(b.links)-5:]
		for i, lag := range []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, 0, 3 * time.Second, 3 * time.Second} {
			links[i].lag = lag
		}
		granted := make(chan error)
		go func() {
			_, err := far.Commit(b.Context(), Acquire(job, token, time.Hour))
			granted <- err
		}()
		time.Sleep(10 * time.Millisecond)
		b.expect("", "", token, "", "")
		b.masters[2].restart(snapshot{})
		b.notice()
		b.wantErr(<-granted, nil)
		time.Sleep(700 * time.Millisecond)
		if b.guarded {
			b.settle()
			b.expect(token, token, token, "", "")
		}
		return b.stolen()
	})
}

// TestVotesThatCount: of a batch's votes those do whose marker is the one that the batch was sent under, stands on the master, and is
// still the known one. An answer from before the master forgot, and was admitted again, comes too late.
func TestVotesThatCount(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	told := sighting{sent: now, got: now.Add(time.Millisecond), told: time.Hour}
	for _, c := range []struct {
		name          string
		known, expect string
		seen          seen
		want          bool
		after         string // known afterwards
	}{
		{"all is well", "m", "m", seen{marker: "m", sighting: told}, true, "m"},
		{"in another database", "m", "m", seen{db: 3, marker: "m@3", sighting: told}, true, "m"},
		{"without a marker", "m", "m", seen{sighting: told}, false, ""},
		{"another one", "m", "m", seen{marker: "other", sighting: told}, false, ""},
		{"that of another database", "m", "m", seen{db: 3, marker: "m@2", sighting: told}, false, ""},
		{"no answer", "m", "m", seen{}, false, ""},
		{"in quarantine when it was sent", "m", "", seen{marker: "m", sighting: told}, false, "m"},
		{"in quarantine since", "", "m", seen{marker: "m", sighting: told}, false, ""},
		{"admitted anew since", "new", "m", seen{marker: "m", sighting: told}, false, "new"},
		{"admitted anew, with that marker", "new", "m", seen{marker: "new", sighting: told}, false, "new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &guard{known: c.known, doubtful: map[int]bool{}, alarm: func() {}}
			if got := g.counts(c.expect, c.seen); got != c.want || g.known != c.after {
				t.Errorf("counts: %v, known %q, want %v, %q", got, g.known, c.want, c.after)
			}
		})
	}
}
