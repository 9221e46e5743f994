package queue

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/quorum/watch"
)

// fakeAlarm shows a view, and records calls, in one synctest bubble.
type fakeAlarm struct {
	changes   chan struct{}
	view      watch.View
	readCount int
	stopped   bool
	ended     bool
}

func (a *fakeAlarm) Changes() <-chan struct{}  { return a.changes }
func (a *fakeAlarm) View(time.Time) watch.View { return a.view }
func (a *fakeAlarm) Read(time.Time)            { a.readCount++ }
func (a *fakeAlarm) ReadAll()                  { a.readCount++ }
func (a *fakeAlarm) Arm()                      { a.readCount++ }
func (a *fakeAlarm) HasEnded() bool            { return a.ended }
func (a *fakeAlarm) Stop()                     { a.stopped = true }

func (a *fakeAlarm) setView(v watch.View) {
	a.view = v
	a.changes <- struct{}{}
	synctest.Wait()
}

// lockWaiter simulates a waiter for a lock that another process holds.
type lockWaiter struct {
	queues     Queues[string]
	alarm      *fakeAlarm
	alarmCount int // number of alarms that were set
	free       atomic.Bool
	// quorum, if it is set, is closed when a majority votes again. Until then, a try returns
	// TryUnknown.
	quorum chan struct{}
	// undecided makes a try return TryUnknown although a majority votes.
	undecided bool
	// onTry runs in each try, before the try determines its result.
	onTry    func()
	tryTimes []time.Duration // since the start
	result   WaitResult
	ended    bool
}

// startWait starts a wait; timeout may be nil.
func startWait(ctx context.Context, timeout <-chan time.Time) *lockWaiter {
	s := &lockWaiter{alarm: &fakeAlarm{changes: make(chan struct{}, 1)}}
	s.begin(ctx, timeout)
	return s
}

// startWaitWithPeers starts a wait next to other processes.
func startWaitWithPeers(ctx context.Context, peers *fakePeers) *lockWaiter {
	s := &lockWaiter{alarm: &fakeAlarm{changes: make(chan struct{}, 1)}}
	s.queues.Peers = peers
	s.begin(ctx, nil)
	return s
}

// begin starts the wait; timeout may be nil.
func (s *lockWaiter) begin(ctx context.Context, timeout <-chan time.Time) {
	start := time.Now()
	go func() {
		s.result = s.queues.Await(ctx, LockWaitOptions[string]{
			Keys: []string{"k"}, Timeout: timeout, Rand: func() float64 { return 1 },
			Alarm:          func(string) Alarm { s.alarmCount++; return s.alarm },
			QuorumRegained: func() <-chan struct{} { return s.quorum },
			Try: func() (TryResult, int, int) {
				s.tryTimes = append(s.tryTimes, time.Since(start))
				if s.onTry != nil {
					s.onTry()
				}
				switch {
				case s.undecided, s.quorum != nil:
					return TryUnknown, 0, 0
				case s.free.Load():
					return TryTaken, 0, 0
				}
				return TryRefused, 0, 0
			},
		})
		s.ended = true
	}()
	synctest.Wait()
}

// TestAwaitWakeup checks that the head does not try while the lock is held. When the alarm reports
// a change, the head tries at once.
func TestAwaitWakeup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		s.alarm.setView(watch.View{Verdict: watch.Held, Expiry: time.Now().Add(time.Hour)})
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		s.free.Store(true)
		s.alarm.setView(watch.View{Verdict: watch.Changed})
		if want := []time.Duration{0, 30 * time.Minute}; !slices.Equal(s.tryTimes, want) || !s.ended || s.result != WaitDone {
			t.Errorf("tries at %v, want %v; done %v", s.tryTimes, want, s.ended)
		}
		if s.alarm.readCount != 1 || !s.alarm.stopped {
			t.Errorf("%d reads, stopped %v", s.alarm.readCount, s.alarm.stopped)
		}
	})
}

// TestTryAtExpiry checks that the head tries when the lease expires, if the alarm reports
// nothing.
func TestTryAtExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		s.alarm.setView(watch.View{Verdict: watch.Held, Expiry: time.Now().Add(time.Minute)})
		s.free.Store(true)
		time.Sleep(time.Minute + maxExpiryDelay)
		synctest.Wait()
		if want := []time.Duration{0, time.Minute + maxExpiryDelay}; !slices.Equal(s.tryTimes, want) {
			t.Errorf("tries at %v, want %v", s.tryTimes, want)
		}
	})
}

// TestAwaitPolling checks that the head polls without information from the alarm.
func TestAwaitPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := startWait(ctx, nil)
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		if n := len(s.tryTimes); n < 25 || n > 40 {
			t.Errorf("%d tries in a second", n)
		}
		if waits, _ := s.queues.HasWaiter("k"); !s.ended || s.result != WaitCanceled || !s.alarm.stopped || waits {
			t.Errorf("the wait has not ended: %+v", s)
		}
	})
}

// TestAwaitOwnRelease checks that the head tries at once after a release in this process, without a
// report of the alarm. A wait ends at its time limit.
func TestAwaitOwnRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), time.After(time.Minute))
		s.alarm.setView(watch.View{Verdict: watch.Held})
		time.Sleep(time.Second)
		s.queues.RecordRelease("k", -1)
		synctest.Wait()
		if want := []time.Duration{0, time.Second}; !slices.Equal(s.tryTimes, want) {
			t.Errorf("tries at %v, want %v", s.tryTimes, want)
		}
		s.alarm.setView(watch.View{Verdict: watch.Held})
		time.Sleep(time.Minute)
		synctest.Wait()
		if !s.ended || s.result != WaitTimedOut {
			t.Errorf("done %v, ended %d", s.ended, s.result)
		}
	})
}

// TestAwaitReleaseDuringTry checks that the head tries again at once if this process releases the
// lock during a refused try. Such a refusal does not prove that another process holds the lock.
func TestAwaitReleaseDuringTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		ticket := s.queues.Enter("k", 0) // keeps the queue
		s.onTry = func() {
			if len(s.tryTimes) == 2 {
				s.queues.RecordRelease("k", -1)
			} else {
				s.free.Store(true)
			}
		}
		s.queues.RecordRelease("k", -1)
		synctest.Wait()
		if want := []time.Duration{0, 0, 0}; !slices.Equal(s.tryTimes, want) || !s.ended {
			t.Errorf("tries at %v, want %v", s.tryTimes, want)
		}
		if s.alarm.readCount != 1 {
			t.Errorf("the head did not try again at once; %d reads", s.alarm.readCount)
		}
		s.queues.Leave(ticket, false)
	})
}

// TestSecondAlarm checks that the head sets a new alarm when the old alarm has ended
// after a change of the masters.
func TestSecondAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := startWait(ctx, nil)
		first := s.alarm
		first.setView(watch.View{Verdict: watch.Held})
		s.alarm = &fakeAlarm{changes: make(chan struct{}, 1), view: watch.View{Verdict: watch.Held}}
		first.ended = true
		first.setView(watch.View{})
		time.Sleep(time.Second)
		synctest.Wait()
		if s.alarmCount != 2 || !first.stopped || s.alarm.readCount == 0 {
			t.Errorf("%d alarms were set, the first one stopped: %v; %d reads", s.alarmCount, first.stopped, s.alarm.readCount)
		}
		cancel()
		synctest.Wait()
	})
}

// TestAwaitQuorum checks that the head does not try while too few masters vote, even if
// the alarm reports a change. When a majority votes, the head tries at once.
func TestAwaitQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		quorum := make(chan struct{})
		s.quorum = quorum
		s.alarm.setView(watch.View{Verdict: watch.Changed})
		time.Sleep(time.Minute)
		s.alarm.changes <- struct{}{}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(s.tryTimes); n != 2 {
			t.Errorf("tries at %v, want two", s.tryTimes)
		}
		s.quorum = nil
		s.free.Store(true)
		start := time.Now()
		close(quorum)
		synctest.Wait()
		if !s.ended || s.result != WaitDone || time.Since(start) > 0 {
			t.Errorf("done %v, ended %d", s.ended, s.result)
		}
		if _, undecided := s.queues.HasWaiter("k"); undecided || len(s.tryTimes) != 3 {
			t.Errorf("tries at %v", s.tryTimes)
		}
	})
}

// TestUndecidedTimeout checks that every waiter in the queue returns WaitTimedOutUndecided if its
// wait ends while the holder is unknown.
func TestUndecidedTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), time.After(time.Minute))
		s.quorum = make(chan struct{})
		s.alarm.setView(watch.View{Verdict: watch.Changed})
		secondResult := WaitDone
		go func() {
			secondResult = s.queues.Await(t.Context(), LockWaitOptions[string]{
				Keys: []string{"k"}, Timeout: time.After(time.Second), Rand: func() float64 { return 1 },
				QuorumRegained: func() <-chan struct{} { return s.quorum },
			})
		}()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if secondResult != WaitTimedOutUndecided || !s.ended || s.result != WaitTimedOutUndecided {
			t.Errorf("the head ended with %d, the second waiter with %d, want %d", s.result, secondResult, WaitTimedOutUndecided)
		}
	})
}

// TestAwaitUndecided checks a wait for a lock whose holder remains unknown although a majority
// votes. The tries become less frequent, and the wait returns WaitTimedOutUndecided.
func TestAwaitUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), time.After(time.Minute))
		s.undecided = true
		s.alarm.setView(watch.View{Verdict: watch.Changed})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(s.tryTimes); n < 60 || n > 75 || s.result != WaitTimedOutUndecided {
			t.Errorf("%d tries in a minute, ended %d", n, s.result)
		}
	})
}

// TestAwaitPassedLock checks that a waiter puts a mark for other processes, and tries as soon
// as another process leaves the lock to it. If the try fails, the waiter puts a new mark.
func TestAwaitPassedLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{}
		s := startWaitWithPeers(t.Context(), peers)
		heldView := watch.View{Verdict: watch.Held, Expiry: time.Now().Add(time.Hour)}
		s.alarm.setView(heldView)
		if len(peers.marks) != 1 || peers.marks[0].putCount != 1 {
			t.Fatalf("marks %v", peers.marks)
		}
		peers.marks[0].setView(heldView)
		time.Sleep(time.Minute)
		if len(s.tryTimes) != 1 {
			t.Errorf("there are tries although the lock was not left to it: %v", s.tryTimes)
		}
		peers.marks[0].setView(watch.View{Verdict: watch.Changed})
		if len(s.tryTimes) != 2 || !peers.marks[0].stopped || len(peers.marks) != 2 || peers.marks[1].putCount != 1 {
			t.Fatalf("tries %v, %d marks", s.tryTimes, len(peers.marks))
		}
		s.free.Store(true)
		peers.marks[1].setView(watch.View{Verdict: watch.Free})
		if len(s.tryTimes) != 3 || !s.ended || peers.unmarkCount != 1 {
			t.Errorf("tries %v, done %v, unmarked %d times", s.tryTimes, s.ended, peers.unmarkCount)
		}
	})
}

// startWaitAfterLeave starts a wait for a lock that was just left to another process.
func startWaitAfterLeave(t *testing.T) (*lockWaiter, *fakePeers) {
	peers := &fakePeers{waitingPeer: "other"}
	s := &lockWaiter{alarm: &fakeAlarm{changes: make(chan struct{}, 1)}}
	s.queues.Peers = peers
	s.queues.Leave(s.queues.Enter("k", 0), true)
	s.queues.RecordRelease("k", -1)
	s.begin(t.Context(), nil)
	if len(s.tryTimes) != 0 || len(peers.marks) != 1 || len(peers.peerAlarms) != 1 || s.alarm.readCount != 1 {
		t.Fatalf("tries %v, %d marks, %d peer alarms, %d reads", s.tryTimes, len(peers.marks), len(peers.peerAlarms), s.alarm.readCount)
	}
	return s, peers
}

// TestAwaitLeaveToPeer checks that a waiter that leaves the lock to another process puts a mark at
// once, and tries when another process leaves the lock to it.
func TestAwaitLeaveToPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peers := startWaitAfterLeave(t)
		s.free.Store(true)
		peers.marks[0].setView(watch.View{Verdict: watch.Changed})
		if len(s.tryTimes) != 1 || !s.ended || !peers.peerAlarms[0].stopped {
			t.Errorf("tries %v", s.tryTimes)
		}
	})
}

// TestAwaitAfterPeer checks the waiter after the mark of the process to which the lock was left is
// gone. The waiter keeps waiting if that process holds the lock, and tries at once if the lock is
// free.
func TestAwaitAfterPeer(t *testing.T) {
	for verdict, tries := range map[watch.Verdict]int{watch.Held: 0, watch.Free: 1} {
		synctest.Test(t, func(t *testing.T) {
			s, peers := startWaitAfterLeave(t)
			s.free.Store(verdict == watch.Free)
			s.alarm.setView(watch.View{Verdict: verdict})
			peers.peerAlarms[0].setView(watch.View{Verdict: watch.Held})
			if len(s.tryTimes) != 0 {
				t.Fatalf("there are tries although the lock is left to a peer: %v", s.tryTimes)
			}
			peers.peerAlarms[0].setView(watch.View{Verdict: watch.Free})
			if len(s.tryTimes) != tries || s.ended != (tries > 0) || !peers.peerAlarms[0].stopped {
				t.Errorf("the lock is %d: tries %v", verdict, s.tryTimes)
			}
			time.Sleep(2 * maxLeaveTime)
			if len(s.tryTimes) != tries {
				t.Errorf("there are tries although the verdict is unchanged: %v", s.tryTimes)
			}
			s.free.Store(true)
			s.queues.RecordRelease("k", -1)
			synctest.Wait()
		})
	}
}

// TestAwaitEndOfLeaveTime checks that a process that does not take the lock that was left to it
// delays the waiter only for a limited time.
func TestAwaitEndOfLeaveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peers := startWaitAfterLeave(t)
		s.free.Store(true)
		peers.peerAlarms[0].setView(watch.View{Verdict: watch.Held})
		time.Sleep(maxLeaveTime)
		synctest.Wait()
		if want := []time.Duration{maxLeaveTime}; !slices.Equal(s.tryTimes, want) || !s.ended {
			t.Errorf("tries at %v, want %v", s.tryTimes, want)
		}
	})
}

// TestAwaitWithoutPeers checks that a wait without other processes needs no marks and no questions.
func TestAwaitWithoutPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		peers := &fakePeers{alone: true}
		s := startWaitWithPeers(ctx, peers)
		s.queues.RecordRelease("k", -1)
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(s.tryTimes) != 2 || len(peers.marks)+peers.askCount+peers.passCount+peers.unmarkCount > 0 {
			t.Errorf("tries %v, %+v", s.tryTimes, peers)
		}
	})
}
