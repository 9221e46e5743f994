package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

const token, rival = "me", "you"

var job = Key{Name: "job"}

// bench holds a cluster over fake masters, within a synctest bubble.
type bench struct {
	*testing.T
	masters []*fakeMaster
	cluster *Cluster
	locker  *Locker
}

// inBubble runs a test on n fake masters, in fake time.
func inBubble(t *testing.T, n int, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t}
		for range n {
			b.masters = append(b.masters, newFakeMaster())
		}
		b.cluster = b.newCluster()
		b.locker = NewLocker(b.cluster)
		test(b)
	})
}

// newCluster connects another proxy to the same masters.
func (b *bench) newCluster() *Cluster {
	var opts Options
	for i := range b.masters {
		opts.Masters = append(opts.Masters, fmt.Sprintf("redis://m%d:6379", i))
	}
	return b.connect(opts)
}

// connect runs a cluster over all fake masters until the test ends.
func (b *bench) connect(opts Options) *Cluster {
	c, stop := b.start(opts)
	b.Cleanup(stop)
	return c
}

func (b *bench) start(opts Options) (c *Cluster, stop func()) {
	var transports []master.Transport
	for _, m := range b.masters {
		transports = append(transports, m)
	}
	opts.Unguarded = true
	opts.Rand = func() float64 { return 0.5 }
	opts.setDefaults()
	c = newCluster(opts, transports)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	synctest.Wait()
	return c, func() { cancel(); <-done }
}

func (b *bench) lock(token string, ttl time.Duration) (time.Duration, error) {
	got, err := b.locker.Lock(b.Context(), LockRequest{Key: job, Token: token, TTL: ttl})
	return got.Validity, err
}

func (b *bench) mustLock(token string, ttl time.Duration) {
	b.Helper()
	if _, err := b.lock(token, ttl); err != nil {
		b.Fatalf("LOCK %s: %v", token, err)
	}
	synctest.Wait()
}

// expect checks each master's value of the job, "" for none.
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

// plant stores a value on some masters, as a lock of another proxy. An empty value removes the
// present one.
func (b *bench) plant(value string, ttl time.Duration, masters ...int) {
	attempt := cell.NumberedSource(big.NewInt(int64(len(value)) + 100)).Attempt()
	for _, i := range masters {
		b.masters[i].set(func(f *fakeMaster) {
			if value == "" {
				f.store(0).Delete(job.Name)
				return
			}
			f.store(0).Put(job.Name, cell.Cell{Form: cell.Plain, Attempt: attempt,
				Value: cell.Value{Present: true, Text: value}}, ttl)
		})
	}
}

func (b *bench) wantErr(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("got error %v, want %v", err, want)
	}
}

// wantNoQuorum requires a *NoQuorumError, and returns it.
func (b *bench) wantNoQuorum(err error) *NoQuorumError {
	b.Helper()
	var none *NoQuorumError
	if !errors.As(err, &none) {
		b.Fatalf("got %v, want a NoQuorumError", err)
	}
	return none
}

func (b *bench) taking(token string) TakeRequest {
	return TakeRequest{Keys: []Key{job}, Terms: Terms{Tokens: []string{token}, TTL: time.Hour}}
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

// TestLockedAgainWithTheSameTokenStaysLocked locks twice with the same token. The second lock is
// refused, and its undo must not remove the first one.
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
		b.masters[0].away()
		b.masters[2].hang()
		b.masters[4].loses()
		start := time.Now()
		_, err := b.lock(token, time.Minute)
		if none := b.wantNoQuorum(err); none.Answered != 2 {
			b.Errorf("%d answers, want 2", none.Answered)
		}
		const want = "2 of 5 masters answered, 3 needed: " +
			"m0:6379: connection refused; m2:6379: no answer in time; m4:6379: the reply was lost"
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

// TestLateSetIsUndone lets a stopped process execute the contents of its socket buffer when it
// continues. The late SET is undone.
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

// TestUndoOfAnUnknownSetSparesAnEarlierHold locks a second time while the masters are unreachable.
// The undo of the second try must not remove the first lock.
func TestUndoOfAnUnknownSetSparesAnEarlierHold(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.mustLock(token, time.Hour)
		time.Sleep(time.Minute)
		for _, m := range b.masters {
			m.loses()
		}
		if _, err := b.lock(token, time.Hour); err == nil {
			b.Fatal("granted without an answer")
		}
		time.Sleep(3 * time.Second)
		b.expect(token, token, token)
	})
}

func TestCallerThatLeavesHoldsNothing(t *testing.T) {
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

// TestOperationOfACallerThatLeftIsDroppedUnsent checks that an operation is never sent if its
// caller leaves while it waits behind another batch.
func TestOperationOfACallerThatLeftIsDroppedUnsent(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		b.masters[0].slow(50 * time.Millisecond)
		go func() { _, _ = b.cluster.Read(b.Context(), []Key{job}) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(b.Context(), time.Millisecond)
		defer cancel()
		_, err := b.cluster.Take(ctx, b.taking(token))
		b.wantErr(err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		b.masters[0].set(func(f *fakeMaster) {
			if slices.Contains(f.log, "cell.Take") {
				b.Errorf("the master was sent %q", f.log)
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
		if none := b.wantNoQuorum(err); none.Error() != "a majority of 3 masters agreed only after 60 ms" {
			b.Error(none)
		}
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
		b.masters[2].away()
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.expect("", "", token)
		b.masters[2].back()
		time.Sleep(3 * time.Second)
		b.expect("", "", "")
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

func TestDownMasterIsProbedSparingly(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		down := b.masters[0]
		down.away()
		b.mustLock(token, time.Hour) // the proxy notices
		down.set(func(f *fakeMaster) { f.contacts = 0 })
		time.Sleep(time.Minute)
		down.set(func(f *fakeMaster) {
			if f.contacts < 120 || f.contacts > 240 {
				b.Errorf("%d probes in a minute, want one every quarter to half second", f.contacts)
			}
		})
		if s := b.cluster.Status()[0]; s.Err == nil || !strings.Contains(s.Cause(), "refused") {
			b.Errorf("status %+v, want it down and why", s)
		}
		down.back()
		time.Sleep(time.Second / 2) // the longest pause of the prober
		if s := b.cluster.Status()[0]; s.Err != nil {
			b.Errorf("status %+v, want it up", s)
		}
	})
}

func TestIdleMasterThatDiesIsNoticedBeforeALockMeetsIt(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.masters[0].hang()
		time.Sleep(2*guard.Heartbeat + DefaultMasterTimeout)
		if s := b.cluster.Status()[0]; s.Err == nil {
			b.Error("nobody noticed")
		}
		b.masters[0].wake()
	})
}

func TestStoppedClusterSendsWhatIsQueuedAndRefusesTheRest(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		c, stop := b.start(Options{Masters: []string{"redis://a", "redis://b", "redis://c"}})
		_, err := c.Take(b.Context(), b.taking(token))
		b.wantErr(err, nil)
		for _, m := range b.masters {
			m.slow(10 * time.Millisecond)
		}
		go func() { _, _ = c.Read(b.Context(), []Key{job}) }() // is being sent
		synctest.Wait()
		go func() { _ = c.Release(b.Context(), job, token) }() // waits behind it
		synctest.Wait()
		stop()
		b.expect("", "", "")
		_, err = c.Take(b.Context(), b.taking(token))
		b.wantErr(err, ErrClosed)
	})
}

// TestBackgroundEndsWithTheCluster checks that the end of the cluster drops background tasks that
// have not begun, and waits for running ones.
func TestBackgroundEndsWithTheCluster(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		c, stop := b.start(Options{Masters: []string{"redis://a", "redis://b", "redis://c"}})
		b.plant(rival, 10*time.Millisecond, 0)
		_, err := c.Take(b.Context(), b.taking(token))
		b.wantErr(err, nil)
		working := false
		c.masterSet().after(5*time.Millisecond, func() { working = true; time.Sleep(time.Second); working = false })
		c.masterSet().after(10*time.Millisecond, func() { b.Error("it began after the end") })
		time.Sleep(6 * time.Millisecond)
		stop()
		if working {
			b.Error("the end did not wait")
		}
		time.Sleep(time.Minute)
		b.expect("", token, token)
	})
}

// TestOwedUntilItIsAnswered checks that a pending removal is sent again until the master executes
// it, even if the master is up and replies with errors.
func TestOwedUntilItIsAnswered(t *testing.T) {
	for name, trouble := range map[string]struct{ begin, end func(*fakeMaster) }{
		"away":    {(*fakeMaster).away, (*fakeMaster).back},
		"hanging": {(*fakeMaster).hang, (*fakeMaster).wake},
		"read only": {
			func(m *fakeMaster) { m.set(func(f *fakeMaster) { f.fails = readOnly }) },
			func(m *fakeMaster) { m.set(func(f *fakeMaster) { f.fails = nil }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(b *bench) {
				b.mustLock(token, time.Hour)
				trouble.begin(b.masters[2])
				b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
				time.Sleep(5 * time.Second)
				b.expect("", "", token)
				if owed := b.cluster.Status()[2].RemovalsPending; owed != 1 {
					b.Errorf("%d are owed", owed)
				}
				trouble.end(b.masters[2])
				time.Sleep(3 * time.Second)
				b.expect("", "", "")
				if owed := b.cluster.Status()[2].RemovalsPending; owed != 0 {
					b.Errorf("%d are still owed", owed)
				}
			})
		})
	}
}

// TestUpWhileMoreIsOwed adds a pending removal whenever a master has got the last one. The master
// comes up nevertheless.
func TestUpWhileMoreIsOwed(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		b.masters[2].away()
		b.wantErr(b.locker.Unlock(b.Context(), job, token), ErrNotHeld)
		m := b.cluster.masterSet().masters[2]
		last := 0
		release := func() {
			last++
			m.Tell(0, cell.Remove{Name: fmt.Sprint(last), Attempt: "a", How: cell.Release}, true)
		}
		for range 3000 {
			release()
		}
		b.masters[2].slow(time.Millisecond)
		b.masters[2].set(func(f *fakeMaster) {
			f.refuses, f.fails = false, func(do cell.Op) error {
				if r, is := do.(cell.Remove); is && r.Name == fmt.Sprint(last) && m.IsDown() {
					release()
				}
				return nil
			}
		})
		time.Sleep(3 * time.Second)
		if s := b.cluster.Status()[2]; s.Err != nil || s.RemovalsPending != 0 {
			b.Errorf("%v, %d are owed", s.Err, s.RemovalsPending)
		}
	})
}

func readOnly(do cell.Op) error {
	if do.Writes() {
		return errors.New("READONLY You can't write against a read only replica.")
	}
	return nil
}

// TestThroughAnotherProxy checks that a second proxy, too, can extend, replace and release a lock.
func TestThroughAnotherProxy(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		other := NewLocker(b.newCluster())
		b.mustLock(token, time.Minute)
		_, err := other.Extend(b.Context(), job, token, time.Hour)
		b.wantErr(err, nil)
		b.wantErr(other.Unlock(b.Context(), job, rival), ErrNotHeld)
		b.wantErr(other.Unlock(b.Context(), job, token), nil)
		b.expect("-*", "-*", "-*")
		b.mustLock(rival, time.Minute) // at once
		b.expect("you*", "you*", "you*")
		b.wantErr(b.locker.Unlock(b.Context(), job, token), ErrNotHeld)
		b.wantErr(b.locker.Unlock(b.Context(), job, rival), nil)
		time.Sleep(10 * time.Second)
		b.expect("", "", "")
	})
}

func TestRead(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		read := func() Look {
			looks, err := b.cluster.Read(b.Context(), []Key{job, {Name: "other"}})
			b.wantErr(err, nil)
			return looks[0]
		}
		if l := read(); l.Present {
			b.Errorf("nothing: %+v", l)
		}
		b.plant(rival, time.Minute, 0, 1)
		if l := read(); l.Present {
			b.Errorf("a leftover: %+v", l)
		}
		b.plant(rival, time.Hour, 0, 1, 2)
		if l := read(); l.Value != rival || l.Left != time.Hour {
			b.Errorf("a lock: %+v", l)
		}
		b.masters[2].away()
		b.masters[3].away()
		b.wantNoQuorum(errOf(b.cluster.Read(b.Context(), []Key{job})))
	})
}

func errOf[T any](_ T, err error) error { return err }

func TestUpdate(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		put := func(value string) {
			t.Helper()
			out, err := b.cluster.Update(b.Context(), job, nil, func(l Look) (Decision, error) {
				return Decision{Do: Put, Value: l.Value + value, TTL: time.Hour}, nil
			})
			b.wantErr(err, nil)
			if out.Decision.Do != Put {
				b.Errorf("%v stands", out.Decision)
			}
		}
		put("a")
		b.expect("a", "a", "a")
		put("b")
		b.expect("ab*", "ab*", "ab*")
		b.masters[0].hang()
		put("c")
		b.masters[0].wake()
		time.Sleep(5 * time.Second)
		b.expect("abc*", "abc*", "abc*")
		failed := errors.New("failed")
		_, err := b.cluster.Update(b.Context(), job, nil, func(Look) (Decision, error) { return Decision{}, failed })
		b.wantErr(err, failed)
		b.masters[0].away()
		b.masters[1].away()
		_, err = b.cluster.Update(b.Context(), job, nil,
			func(Look) (Decision, error) { return Decision{Do: Remove}, nil })
		b.wantNoQuorum(err)
	})
}

// TestRemovalWakesWaiters checks that waiters are notified of each kind of removal.
func TestRemovalWakesWaiters(t *testing.T) {
	const byAnother = "release of what another proxy granted"
	release := func(b *bench, _ Granted) error { return b.cluster.Release(b.Context(), job, "holder") }
	for name, remove := range map[string]func(b *bench, got Granted) error{
		"release":  release,
		byAnother:  release,
		"withdraw": func(b *bench, got Granted) error { b.locker.Withdraw([]Key{job}, got); return nil },
		"update": func(b *bench, _ Granted) error {
			_, err := b.cluster.Update(b.Context(), job, nil,
				func(Look) (Decision, error) { return Decision{Do: Remove}, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(b *bench) {
				got, err := b.locker.Lock(b.Context(), LockRequest{Key: job, Token: "holder", TTL: time.Hour})
				b.wantErr(err, nil)
				if name == byAnother { // with a register that does not know the lock
					b.cluster.masterSet().database(0).Register = register.New(register.Options{
						N: 3, Masters: b.cluster.masterSet().database(0), Source: b.cluster.source, Patience: patience,
					})
				}
				var served []string
				b.waiter(b.Context(), b.locker, token, Forever, &served)
				time.Sleep(10 * time.Second)
				b.wantErr(remove(b, got), nil)
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if len(served) == 0 {
					b.Error("not served at once")
				}
			})
		})
	}
}

// TestTakeSeveral checks that several keys are taken, all or none.
func TestTakeSeveral(t *testing.T) {
	inBubble(t, 3, func(b *bench) {
		both := TakeRequest{Keys: []Key{job, {Name: "k2"}}, Terms: Terms{Tokens: []string{token, token}, TTL: time.Minute}}
		_, err := b.cluster.Take(b.Context(), both)
		b.wantErr(err, nil)
		b.wantErr(b.cluster.Release(b.Context(), job, token), nil)
		_, err = b.cluster.Take(b.Context(), both)
		b.wantErr(err, ErrHeld)
		b.expect("", "", "")
		if guess, ok := b.cluster.Guess(Key{Name: "k2"}); !ok || guess != token {
			b.Errorf("guess %q", guess)
		}
	})
}

func TestBodies(t *testing.T) {
	const body, sha = "return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
	inBubble(t, 3, func(b *bench) {
		one, two := NewBodies(b.cluster), NewBodies(b.newCluster())
		b.wantErr(one.Save(b.Context(), sha, body), nil)
		if got, ok, err := two.Find(b.Context(), sha); got != body || !ok || err != nil {
			b.Errorf("got %q, %v, %v", got, ok, err)
		}
		if _, ok, err := two.Find(b.Context(), strings.Repeat("0", 40)); ok || err != nil {
			b.Errorf("found what is not there; %v", err)
		}
		b.masters[0].away()
		b.masters[1].away()
		if got, ok, err := two.Find(b.Context(), sha); got != body || !ok || err != nil { // the hash proves the body
			b.Errorf("on one master: %q, %v, %v", got, ok, err)
		}
		_, _, err := two.Find(b.Context(), strings.Repeat("0", 40))
		b.wantNoQuorum(err)
		b.wantNoQuorum(one.Flush(b.Context()))
		b.masters[0].back()
		b.masters[1].back()
		time.Sleep(3 * time.Second)
		b.wantErr(one.Flush(b.Context()), nil)
		if _, ok, _ := two.Find(b.Context(), sha); ok {
			b.Error("it is still there")
		}
	})
}

func TestMajorityAndKeys(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 7: 4} {
		if got := Majority(n); got != want {
			t.Errorf("a majority of %d is %d, not %d", n, want, got)
		}
	}
}
