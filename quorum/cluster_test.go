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

// fixture holds a cluster over fake masters, within a synctest bubble.
type fixture struct {
	*testing.T
	masters []*fakeMaster
	cluster *Cluster
	locker  *Locker
}

// runInBubble runs a test on n fake masters, in fake time.
func runInBubble(t *testing.T, n int, test func(b *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{T: t}
		for range n {
			b.masters = append(b.masters, newFakeMaster())
		}
		b.cluster = b.newCluster()
		b.locker = NewLocker(b.cluster)
		test(b)
	})
}

// newCluster connects a new proxy to the masters.
func (b *fixture) newCluster() *Cluster {
	var opts Options
	for i := range b.masters {
		opts.Masters = append(opts.Masters, fmt.Sprintf("redis://m%d:6379", i))
	}
	return b.connect(opts)
}

// connect runs a cluster over all fake masters until the test ends.
func (b *fixture) connect(opts Options) *Cluster {
	c, stop := b.start(opts)
	b.Cleanup(stop)
	return c
}

func (b *fixture) start(opts Options) (c *Cluster, stop func()) {
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

func (b *fixture) lock(token string, ttl time.Duration) (time.Duration, error) {
	got, err := b.locker.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: token, TTL: ttl})
	return got.Validity, err
}

func (b *fixture) mustLock(token string, ttl time.Duration) {
	b.Helper()
	if _, err := b.lock(token, ttl); err != nil {
		b.Fatalf("LOCK %s: %v", token, err)
	}
	synctest.Wait()
}

// wantValues checks each master's value of the job, "" for none.
func (b *fixture) wantValues(want ...string) {
	b.Helper()
	synctest.Wait()
	var got []string
	for _, m := range b.masters {
		got = append(got, m.value(job.Name))
	}
	if !slices.Equal(got, want) {
		b.Errorf("masters hold %q, want %q", got, want)
	}
}

// putPlain stores a value on some masters, as a lock of another proxy. An empty value removes the
// current value.
func (b *fixture) putPlain(value string, ttl time.Duration, masters ...int) {
	attempt := cell.NumberedSource(big.NewInt(int64(len(value)) + 100)).Attempt()
	for _, i := range masters {
		b.masters[i].change(func(f *fakeMaster) {
			if value == "" {
				f.store(0).Delete(job.Name)
				return
			}
			f.store(0).Put(job.Name, cell.Cell{Form: cell.Plain, Attempt: attempt,
				Value: cell.Value{Present: true, Text: value}}, ttl)
		})
	}
}

func (b *fixture) wantErr(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("got error %v, want %v", err, want)
	}
}

// wantNoQuorum requires a *NoQuorumError, and returns it.
func (b *fixture) wantNoQuorum(err error) *NoQuorumError {
	b.Helper()
	var noQuorum *NoQuorumError
	if !errors.As(err, &noQuorum) {
		b.Fatalf("got %v, want a NoQuorumError", err)
	}
	return noQuorum
}

func (b *fixture) takeRequest(token string) TakeRequest {
	return TakeRequest{Keys: []Key{job}, TakeOptions: TakeOptions{Tokens: []string{token}, TTL: time.Hour}}
}

func TestLockUnlockExtend(t *testing.T) {
	runInBubble(t, 5, func(b *fixture) {
		validity, err := b.lock(token, 10*time.Second)
		b.wantErr(err, nil)
		if want := 10*time.Second - 100*time.Millisecond - 2*time.Millisecond; validity != want {
			b.Errorf("validity %v, want %v", validity, want)
		}
		b.wantValues(token, token, token, token, token)

		_, err = b.lock(rival, time.Second)
		b.wantErr(err, ErrHeld)
		b.wantErr(b.locker.Unlock(b.Context(), job, rival), ErrNotHeld)

		time.Sleep(6 * time.Second)
		_, err = b.locker.Extend(b.Context(), job, token, 10*time.Second)
		b.wantErr(err, nil)
		time.Sleep(6 * time.Second)
		b.wantValues(token, token, token, token, token)

		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.wantValues("", "", "", "", "")
		_, err = b.locker.Extend(b.Context(), job, token, time.Second)
		b.wantErr(err, ErrNotHeld)
	})
}

func TestSameNameInAnotherDatabase(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.mustLock(token, time.Second)
		other := LockRequest{Keys: []Key{{DB: 1, Name: job.Name}}, Token: rival, TTL: time.Second}
		_, err := b.locker.Lock(b.Context(), other)
		b.wantErr(err, nil)
	})
}

func TestUndoRemovesOnlyOwnCells(t *testing.T) {
	runInBubble(t, 5, func(b *fixture) {
		b.putPlain(rival, time.Minute, 1, 2, 4)
		_, err := b.lock(token, time.Second)
		b.wantErr(err, ErrHeld)
		b.wantValues("", rival, rival, "", rival)
	})
}

// TestRelockWithSameToken requests a lock that is held with the same token. A
// majority refuses the LOCK, and its undo must not remove the earlier lock.
func TestRelockWithSameToken(t *testing.T) {
	runInBubble(t, 5, func(b *fixture) {
		b.putPlain(token, time.Minute, 0, 1, 2)
		_, err := b.lock(token, time.Minute)
		b.wantErr(err, ErrHeld)
		b.wantValues(token, token, token, "", "")
	})
}

func TestNoQuorumUndoesLock(t *testing.T) {
	runInBubble(t, 5, func(b *fixture) {
		b.masters[0].refuseConnections()
		b.masters[2].hang()
		b.masters[4].loseReply()
		start := time.Now()
		_, err := b.lock(token, time.Minute)
		if noQuorum := b.wantNoQuorum(err); noQuorum.VoteCount != 2 {
			b.Errorf("%d answers, want 2", noQuorum.VoteCount)
		}
		const want = "2 of 5 masters answered, 3 needed: " +
			"m0:6379: connection refused; m2:6379: no answer in time; m4:6379: the reply was lost"
		if err.Error() != want {
			b.Errorf("got  %q\nwant %q", err, want)
		}
		b.wantErr(err, errLostReply)
		if elapsed := time.Since(start); elapsed > DefaultMasterTimeout {
			b.Errorf("took %v, more than a master's timeout", elapsed)
		}
		b.masters[2].resume()
		time.Sleep(3 * time.Second)
		b.wantValues("", "", "", "", "")
	})
}

// TestLateSetIsUndone lets masters hang, and then execute the requests in their socket buffers. The
// proxy undoes the late SET.
func TestLateSetIsUndone(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.masters[0].hang()
		b.masters[1].hang()
		_, err := b.lock(token, time.Hour)
		if err == nil {
			b.Fatal("granted by one master of three")
		}
		time.Sleep(10 * time.Second)
		b.masters[0].resume()
		b.masters[1].resume()
		time.Sleep(3 * time.Second)
		b.wantValues("", "", "")
	})
}

// TestUndoKeepsAnEarlierLock takes a lock a second time, and loses the replies of the masters. The
// undo of the second try must not remove the first lock.
func TestUndoKeepsAnEarlierLock(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.mustLock(token, time.Hour)
		time.Sleep(time.Minute)
		for _, m := range b.masters {
			m.loseReply()
		}
		if _, err := b.lock(token, time.Hour); err == nil {
			b.Fatal("granted without an answer")
		}
		time.Sleep(3 * time.Second)
		b.wantValues(token, token, token)
	})
}

func TestCanceledLockIsUndone(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		for _, m := range b.masters {
			m.setLatency(10 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Millisecond)
		defer cancel()
		_, err := b.locker.Lock(ctx, LockRequest{Keys: []Key{job}, Token: token, TTL: time.Hour})
		b.wantErr(err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		b.wantValues("", "", "")
	})
}

// TestQueuedOperationIsDroppedAfterCancel checks that an operation is never sent if its caller
// leaves while the operation waits behind another batch.
func TestQueuedOperationIsDroppedAfterCancel(t *testing.T) {
	runInBubble(t, 1, func(b *fixture) {
		b.masters[0].setLatency(50 * time.Millisecond)
		go func() { _, _ = b.cluster.Read(b.Context(), []Key{job}) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(b.Context(), time.Millisecond)
		defer cancel()
		_, err := b.cluster.Take(ctx, b.takeRequest(token))
		b.wantErr(err, context.DeadlineExceeded)
		time.Sleep(time.Second)
		b.masters[0].change(func(f *fakeMaster) {
			if slices.Contains(f.log, "cell.Take") {
				b.Errorf("the master was sent %q", f.log)
			}
		})
	})
}

func TestGrantWithoutValidityIsRefused(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		for _, m := range b.masters {
			m.setLatency(60 * time.Millisecond)
		}
		_, err := b.lock(token, 60*time.Millisecond)
		if noQuorum := b.wantNoQuorum(err); noQuorum.Error() != "a majority of 3 masters agreed only after 60 ms" {
			b.Error(noQuorum)
		}
		time.Sleep(time.Second)
		b.wantValues("", "", "")
	})
}

func TestMinorityOfHungMastersAddsNoLatency(t *testing.T) {
	runInBubble(t, 5, func(b *fixture) {
		b.masters[1].hang()
		b.masters[3].hang()
		start := time.Now()
		for range 3 {
			b.mustLock(token, time.Second)
			b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		}
		if elapsed := time.Since(start); elapsed != 0 {
			b.Errorf("took %v, want no wait at all", elapsed)
		}
		b.masters[1].resume()
		b.masters[3].resume()
	})
}

func TestReleaseReachesAMasterThatWasDown(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.mustLock(token, time.Hour)
		b.masters[2].refuseConnections()
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.wantValues("", "", token)
		b.masters[2].acceptConnections()
		time.Sleep(3 * time.Second)
		b.wantValues("", "", "")
	})
}

func TestUnknownScriptIsSentWhole(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.mustLock(token, time.Hour)
		for _, m := range b.masters {
			m.change(func(f *fakeMaster) { f.unknownScripts = 1 })
		}
		b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
		b.wantValues("", "", "")
	})
}

func TestDownMasterIsProbedSparingly(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		master0 := b.masters[0]
		master0.refuseConnections()
		b.mustLock(token, time.Hour) // the proxy notices that the master is down
		master0.change(func(f *fakeMaster) { f.contacts = 0 })
		time.Sleep(time.Minute)
		master0.change(func(f *fakeMaster) {
			if f.contacts < 120 || f.contacts > 240 {
				b.Errorf("%d probes in a minute, want one every quarter to half second", f.contacts)
			}
		})
		if s := b.cluster.Status()[0]; s.Err == nil || !strings.Contains(s.Cause(), "refused") {
			b.Errorf("status %+v, want it down and why", s)
		}
		master0.acceptConnections()
		time.Sleep(time.Second / 2) // the longest pause of the prober
		if s := b.cluster.Status()[0]; s.Err != nil {
			b.Errorf("status %+v, want it up", s)
		}
	})
}

func TestHungIdleMasterIsDetected(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.masters[0].hang()
		time.Sleep(2*guard.Heartbeat + DefaultMasterTimeout)
		if s := b.cluster.Status()[0]; s.Err == nil {
			b.Error("nobody noticed")
		}
		b.masters[0].resume()
	})
}

func TestStoppedClusterSendsQueuedOperations(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		c, stop := b.start(Options{Masters: []string{"redis://a", "redis://b", "redis://c"}})
		_, err := c.Take(b.Context(), b.takeRequest(token))
		b.wantErr(err, nil)
		for _, m := range b.masters {
			m.setLatency(10 * time.Millisecond)
		}
		go func() { _, _ = c.Read(b.Context(), []Key{job}) }() // this read is being sent
		synctest.Wait()
		go func() { _ = c.Release(b.Context(), job, token) }() // the release waits behind the read
		synctest.Wait()
		stop()
		b.wantValues("", "", "")
		_, err = c.Take(b.Context(), b.takeRequest(token))
		b.wantErr(err, ErrClosed)
	})
}

// TestBackgroundEndsWithTheCluster checks that the end of the cluster drops background tasks that
// have not begun, and waits for running tasks.
func TestBackgroundEndsWithTheCluster(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		c, stop := b.start(Options{Masters: []string{"redis://a", "redis://b", "redis://c"}})
		b.putPlain(rival, 10*time.Millisecond, 0)
		_, err := c.Take(b.Context(), b.takeRequest(token))
		b.wantErr(err, nil)
		working := false
		c.masterSet().runAfter(5*time.Millisecond, func() { working = true; time.Sleep(time.Second); working = false })
		c.masterSet().runAfter(10*time.Millisecond, func() { b.Error("it began after the end") })
		time.Sleep(6 * time.Millisecond)
		stop()
		if working {
			b.Error("the end did not wait")
		}
		time.Sleep(time.Minute)
		b.wantValues("", token, token)
	})
}

// TestRemovalIsRepeatedUntilReply checks that a pending removal is sent again until the master
// executes it, even if the master is up and replies with errors.
func TestRemovalIsRepeatedUntilReply(t *testing.T) {
	for name, failure := range map[string]struct{ begin, end func(*fakeMaster) }{
		"away":    {(*fakeMaster).refuseConnections, (*fakeMaster).acceptConnections},
		"hanging": {(*fakeMaster).hang, (*fakeMaster).resume},
		"read only": {
			func(m *fakeMaster) { m.change(func(f *fakeMaster) { f.errorFor = readOnlyError }) },
			func(m *fakeMaster) { m.change(func(f *fakeMaster) { f.errorFor = nil }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			runInBubble(t, 3, func(b *fixture) {
				b.mustLock(token, time.Hour)
				failure.begin(b.masters[2])
				b.wantErr(b.locker.Unlock(b.Context(), job, token), nil)
				time.Sleep(5 * time.Second)
				b.wantValues("", "", token)
				if pending := b.cluster.Status()[2].RemovalsPending; pending != 1 {
					b.Errorf("%d are owed", pending)
				}
				failure.end(b.masters[2])
				time.Sleep(3 * time.Second)
				b.wantValues("", "", "")
				if pending := b.cluster.Status()[2].RemovalsPending; pending != 0 {
					b.Errorf("%d are still owed", pending)
				}
			})
		})
	}
}

// TestMasterComesUpWhileRemovalsArePending adds another pending removal whenever a master has
// executed the last removal. The master comes up nevertheless.
func TestMasterComesUpWhileRemovalsArePending(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.masters[2].refuseConnections()
		b.wantErr(b.locker.Unlock(b.Context(), job, token), ErrNotHeld)
		m := b.cluster.masterSet().masters[2]
		last := 0
		release := func() {
			last++
			m.Tell(0, cell.Remove{Name: fmt.Sprint(last), Attempt: "a", Mode: cell.Release}, true)
		}
		for range 3000 {
			release()
		}
		b.masters[2].setLatency(time.Millisecond)
		b.masters[2].change(func(f *fakeMaster) {
			f.refuses, f.errorFor = false, func(do cell.Op) error {
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

func readOnlyError(do cell.Op) error {
	if do.Writes() {
		return errors.New("READONLY You can't write against a read only replica.")
	}
	return nil
}

// TestLockThroughAnotherProxy checks that a second proxy, too, can extend, replace and release a
// lock.
func TestLockThroughAnotherProxy(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		b.mustLock(token, time.Minute)
		_, err := other.Extend(b.Context(), job, token, time.Hour)
		b.wantErr(err, nil)
		b.wantErr(other.Unlock(b.Context(), job, rival), ErrNotHeld)
		b.wantErr(other.Unlock(b.Context(), job, token), nil)
		b.wantValues("-*", "-*", "-*")
		b.mustLock(rival, time.Minute) // immediately after the removal
		b.wantValues("you*", "you*", "you*")
		b.wantErr(b.locker.Unlock(b.Context(), job, token), ErrNotHeld)
		b.wantErr(b.locker.Unlock(b.Context(), job, rival), nil)
		time.Sleep(10 * time.Second)
		b.wantValues("", "", "")
	})
}

func TestRead(t *testing.T) {
	runInBubble(t, 5, func(b *fixture) {
		read := func() Snapshot {
			snapshots, err := b.cluster.Read(b.Context(), []Key{job, {Name: "other"}})
			b.wantErr(err, nil)
			return snapshots[0]
		}
		if l := read(); l.Present {
			b.Errorf("nothing: %+v", l)
		}
		b.putPlain(rival, time.Minute, 0, 1)
		if l := read(); l.Present {
			b.Errorf("a leftover: %+v", l)
		}
		b.putPlain(rival, time.Hour, 0, 1, 2)
		if l := read(); l.Value != rival || l.TimeLeft != time.Hour {
			b.Errorf("a lock: %+v", l)
		}
		b.masters[2].refuseConnections()
		b.masters[3].refuseConnections()
		b.wantNoQuorum(errOf(b.cluster.Read(b.Context(), []Key{job})))
	})
}

func errOf[T any](_ T, err error) error { return err }

func TestUpdate(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		put := func(value string) {
			t.Helper()
			out, err := b.cluster.Update(b.Context(), job, nil, func(l Snapshot) (Decision, error) {
				return Decision{Action: Put, Value: l.Value + value, TTL: time.Hour}, nil
			})
			b.wantErr(err, nil)
			if out.Decision.Action != Put {
				b.Errorf("%v stands", out.Decision)
			}
		}
		put("a")
		b.wantValues("a", "a", "a")
		put("b")
		b.wantValues("ab*", "ab*", "ab*")
		b.masters[0].hang()
		put("c")
		b.masters[0].resume()
		time.Sleep(5 * time.Second)
		b.wantValues("abc*", "abc*", "abc*")
		failed := errors.New("failed")
		_, err := b.cluster.Update(b.Context(), job, nil, func(Snapshot) (Decision, error) { return Decision{}, failed })
		b.wantErr(err, failed)
		b.masters[0].refuseConnections()
		b.masters[1].refuseConnections()
		_, err = b.cluster.Update(b.Context(), job, nil,
			func(Snapshot) (Decision, error) { return Decision{Action: Remove}, nil })
		b.wantNoQuorum(err)
	})
}

// TestRemovalNotifiesWaiters checks that waiters are notified of each kind of removal.
func TestRemovalNotifiesWaiters(t *testing.T) {
	const releaseByOtherProxy = "release of what another proxy granted"
	release := func(b *fixture, _ GrantedLock) error { return b.cluster.Release(b.Context(), job, "holder") }
	for name, remove := range map[string]func(b *fixture, got GrantedLock) error{
		"release":           release,
		releaseByOtherProxy: release,
		"withdraw":          func(b *fixture, got GrantedLock) error { b.locker.Withdraw([]Key{job}, got); return nil },
		"update": func(b *fixture, _ GrantedLock) error {
			_, err := b.cluster.Update(b.Context(), job, nil,
				func(Snapshot) (Decision, error) { return Decision{Action: Remove}, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			runInBubble(t, 3, func(b *fixture) {
				got, err := b.locker.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: "holder", TTL: time.Hour})
				b.wantErr(err, nil)
				if name == releaseByOtherProxy { // with a register that does not know the lock
					b.cluster.masterSet().database(0).Register = register.New(register.Options{
						N: 3, Masters: b.cluster.masterSet().database(0), Source: b.cluster.source, ContentionTimeout: contentionTimeout,
					})
				}
				var servedTokens []string
				b.startWaiter(b.Context(), b.locker, token, NoWaitLimit, &servedTokens)
				time.Sleep(10 * time.Second)
				b.wantErr(remove(b, got), nil)
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if len(servedTokens) == 0 {
					b.Error("not served at once")
				}
			})
		})
	}
}

// TestTakeSeveralKeys checks that Take takes several keys, all or none.
func TestTakeSeveralKeys(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		both := TakeRequest{Keys: []Key{job, {Name: "k2"}}, TakeOptions: TakeOptions{Tokens: []string{token, token}, TTL: time.Minute}}
		_, err := b.cluster.Take(b.Context(), both)
		b.wantErr(err, nil)
		b.wantErr(b.cluster.Release(b.Context(), job, token), nil)
		_, err = b.cluster.Take(b.Context(), both)
		b.wantErr(err, ErrHeld)
		b.wantValues("", "", "")
		if guess, ok := b.cluster.Guess(Key{Name: "k2"}); !ok || guess != token {
			b.Errorf("guess %q", guess)
		}
	})
}

func TestBodies(t *testing.T) {
	const body, sha = "return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
	runInBubble(t, 3, func(b *fixture) {
		one, two := NewScriptBodies(b.cluster), NewScriptBodies(b.newCluster())
		b.wantErr(one.Save(b.Context(), sha, body), nil)
		if got, ok, err := two.Find(b.Context(), sha); got != body || !ok || err != nil {
			b.Errorf("got %q, %v, %v", got, ok, err)
		}
		if _, ok, err := two.Find(b.Context(), strings.Repeat("0", 40)); ok || err != nil {
			b.Errorf("found what is not there; %v", err)
		}
		b.masters[0].refuseConnections()
		b.masters[1].refuseConnections()
		// One master suffices: the hash shows whether the body is the right one.
		if got, ok, err := two.Find(b.Context(), sha); got != body || !ok || err != nil {
			b.Errorf("on one master: %q, %v, %v", got, ok, err)
		}
		_, _, err := two.Find(b.Context(), strings.Repeat("0", 40))
		b.wantNoQuorum(err)
		b.wantNoQuorum(one.Flush(b.Context()))
		b.masters[0].acceptConnections()
		b.masters[1].acceptConnections()
		time.Sleep(3 * time.Second)
		b.wantErr(one.Flush(b.Context()), nil)
		if _, ok, _ := two.Find(b.Context(), sha); ok {
			b.Error("it is still there")
		}
	})
}

func TestMajority(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 7: 4} {
		if got := Majority(n); got != want {
			t.Errorf("a majority of %d is %d, not %d", n, want, got)
		}
	}
}
