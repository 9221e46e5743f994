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
	changes chan struct{}
	view    watch.View
	looks   int
	stopped bool
	ended   bool
}

func (a *fakeAlarm) Changes() <-chan struct{}  { return a.changes }
func (a *fakeAlarm) View(time.Time) watch.View { return a.view }
func (a *fakeAlarm) Read(time.Time)            { a.looks++ }
func (a *fakeAlarm) ReadAll()                  { a.looks++ }
func (a *fakeAlarm) Arm()                      { a.looks++ }
func (a *fakeAlarm) Ended() bool               { return a.ended }
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
	// Unknown.
	quorum chan struct{}
	// undecided makes a try return Unknown although a majority votes.
	undecided bool
	// onTry runs in each try, before the try determines its result.
	onTry  func()
	tries  []time.Duration // since the start
	result WaitResult
	ended  bool
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
			Key: "k", Timeout: timeout, Rand: func() float64 { return 1 }, Alarm: func() Alarm { s.alarmCount++; return s.alarm },
			Quorum: func() <-chan struct{} { return s.quorum },
			Try: func() TryResult {
				s.tries = append(s.tries, time.Since(start))
				if s.onTry != nil {
					s.onTry()
				}
				switch {
				case s.undecided, s.quorum != nil:
					return Unknown
				case s.free.Load():
					return Taken
				}
				return Refused
			},
		})
		s.ended = true
	}()
	synctest.Wait()
}

// TestAwaitIsWoken checks that the head does not try while the lock is held. When the alarm reports
// a change, the head tries at once.
func TestAwaitIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		s.alarm.setView(watch.View{Verdict: watch.Held, End: time.Now().Add(time.Hour)})
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		s.free.Store(true)
		s.alarm.setView(watch.View{Verdict: watch.Changed})
		if want := []time.Duration{0, 30 * time.Minute}; !slices.Equal(s.tries, want) || !s.ended || s.result != Done {
			t.Errorf("tries at %v, want %v; done %v", s.tries, want, s.ended)
		}
		if s.alarm.looks != 1 || !s.alarm.stopped {
			t.Errorf("%d looks, stopped %v", s.alarm.looks, s.alarm.stopped)
		}
	})
}

// TestAwaitTriesAtTheEnd checks that the head tries when the lease expires, if the alarm reports
// nothing.
func TestAwaitTriesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		s.alarm.setView(watch.View{Verdict: watch.Held, End: time.Now().Add(time.Minute)})
		s.free.Store(true)
		time.Sleep(time.Minute + expirySpread)
		synctest.Wait()
		if want := []time.Duration{0, time.Minute + expirySpread}; !slices.Equal(s.tries, want) {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
	})
}

// TestAwaitPolls checks that the head polls without information from the alarm.
func TestAwaitPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := startWait(ctx, nil)
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		if n := len(s.tries); n < 25 || n > 40 {
			t.Errorf("%d tries in a second", n)
		}
		if waits, _ := s.queues.Waits("k"); !s.ended || s.result != Canceled || !s.alarm.stopped || waits {
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
		s.queues.Released("k")
		synctest.Wait()
		if want := []time.Duration{0, time.Second}; !slices.Equal(s.tries, want) {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
		s.alarm.setView(watch.View{Verdict: watch.Held})
		time.Sleep(time.Minute)
		synctest.Wait()
		if !s.ended || s.result != TimedOut {
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
			if len(s.tries) == 2 {
				s.queues.Released("k")
			} else {
				s.free.Store(true)
			}
		}
		s.queues.Released("k")
		synctest.Wait()
		if want := []time.Duration{0, 0, 0}; !slices.Equal(s.tries, want) || !s.ended {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
		if s.alarm.looks != 1 {
			t.Errorf("the head did not try again at once; %d looks", s.alarm.looks)
		}
		s.queues.Leave(ticket, false)
	})
}

// TestAwaitSetsAnotherAlarm checks that the head sets a new alarm when the old alarm has ended
// after a change of the masters.
func TestAwaitSetsAnotherAlarm(t *testing.T) {
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
		if s.alarmCount != 2 || !first.stopped || s.alarm.looks == 0 {
			t.Errorf("%d alarms were set, the first one stopped: %v; %d looks", s.alarmCount, first.stopped, s.alarm.looks)
		}
		cancel()
		synctest.Wait()
	})
}

// TestAwaitWaitsForAQuorum checks that the head does not try while too few masters vote, even if
// the alarm reports a change. When a majority votes, the head tries at once.
func TestAwaitWaitsForAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		quorum := make(chan struct{})
		s.quorum = quorum
		s.alarm.setView(watch.View{Verdict: watch.Changed})
		time.Sleep(time.Minute)
		s.alarm.changes <- struct{}{}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(s.tries); n != 2 {
			t.Errorf("tries at %v, want two", s.tries)
		}
		s.quorum = nil
		s.free.Store(true)
		start := time.Now()
		close(quorum)
		synctest.Wait()
		if !s.ended || s.result != Done || time.Since(start) > 0 {
			t.Errorf("done %v, ended %d", s.ended, s.result)
		}
		if _, undecided := s.queues.Waits("k"); undecided || len(s.tries) != 3 {
			t.Errorf("tries at %v", s.tries)
		}
	})
}

// TestAwaitEndsOpen checks that every waiter in the queue returns TimedOutUndecided if its wait
// ends while the holder is unknown.
func TestAwaitEndsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), time.After(time.Minute))
		s.quorum = make(chan struct{})
		s.alarm.setView(watch.View{Verdict: watch.Changed})
		secondResult := Done
		go func() {
			secondResult = s.queues.Await(t.Context(), LockWaitOptions[string]{
				Key: "k", Timeout: time.After(time.Second), Rand: func() float64 { return 1 },
				Quorum: func() <-chan struct{} { return s.quorum },
			})
		}()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if secondResult != TimedOutUndecided || !s.ended || s.result != TimedOutUndecided {
			t.Errorf("the head ended with %d, the second waiter with %d, want %d", s.result, secondResult, TimedOutUndecided)
		}
	})
}

// TestAwaitUndecided checks a wait for a lock whose holder remains unknown although a majority
// votes. The tries become less frequent, and the wait returns TimedOutUndecided.
func TestAwaitUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), time.After(time.Minute))
		s.undecided = true
		s.alarm.setView(watch.View{Verdict: watch.Changed})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(s.tries); n < 60 || n > 75 || s.result != TimedOutUndecided {
			t.Errorf("%d tries in a minute, ended %d", n, s.result)
		}
	})
}

// TestAwaitIsPassedTheLock checks that a waiter puts a mark for other processes, and tries as soon
// as another process leaves the lock to it. If the try fails, the waiter puts a new mark.
func TestAwaitIsPassedTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{}
		s := startWaitWithPeers(t.Context(), peers)
		heldView := watch.View{Verdict: watch.Held, End: time.Now().Add(time.Hour)}
		s.alarm.setView(heldView)
		if len(peers.marks) != 1 || peers.marks[0].puts != 1 {
			t.Fatalf("marks %v", peers.marks)
		}
		peers.marks[0].setView(heldView)
		time.Sleep(time.Minute)
		if len(s.tries) != 1 {
			t.Errorf("there are tries although the lock was not left to it: %v", s.tries)
		}
		peers.marks[0].setView(watch.View{Verdict: watch.Changed})
		if len(s.tries) != 2 || !peers.marks[0].stopped || len(peers.marks) != 2 || peers.marks[1].puts != 1 {
			t.Fatalf("tries %v, %d marks", s.tries, len(peers.marks))
		}
		s.free.Store(true)
		peers.marks[1].setView(watch.View{Verdict: watch.Free})
		if len(s.tries) != 3 || !s.ended || peers.unmarks != 1 {
			t.Errorf("tries %v, done %v, unmarked %d times", s.tries, s.ended, peers.unmarks)
		}
	})
}

// startLeftToPeer starts a wait for a lock that was just left to another process.
func startLeftToPeer(t *testing.T) (*lockWaiter, *fakePeers) {
	peers := &fakePeers{waitingPeer: "other"}
	s := &lockWaiter{alarm: &fakeAlarm{changes: make(chan struct{}, 1)}}
	s.queues.Peers = peers
	s.queues.Leave(s.queues.Enter("k", 0), true)
	s.queues.Released("k")
	s.begin(t.Context(), nil)
	if len(s.tries) != 0 || len(peers.marks) != 1 || len(peers.peerAlarms) != 1 || s.alarm.looks != 1 {
		t.Fatalf("tries %v, %d marks, %d peer alarms, %d looks", s.tries, len(peers.marks), len(peers.peerAlarms), s.alarm.looks)
	}
	return s, peers
}

// TestAwaitLeavesToPeer checks that a waiter that leaves the lock to another process puts a mark at
// once, and tries when another process leaves the lock to it.
func TestAwaitLeavesToPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peers := startLeftToPeer(t)
		s.free.Store(true)
		peers.marks[0].setView(watch.View{Verdict: watch.Changed})
		if len(s.tries) != 1 || !s.ended || !peers.peerAlarms[0].stopped {
			t.Errorf("tries %v", s.tries)
		}
	})
}

// TestAwaitAfterPeer checks the waiter after the mark of the process to which the lock was left is
// gone. The waiter keeps waiting if that process holds the lock, and tries at once if the lock is
// free.
func TestAwaitAfterPeer(t *testing.T) {
	for verdict, tries := range map[watch.Verdict]int{watch.Held: 0, watch.Free: 1} {
		synctest.Test(t, func(t *testing.T) {
			s, peers := startLeftToPeer(t)
			s.free.Store(verdict == watch.Free)
			s.alarm.setView(watch.View{Verdict: verdict})
			peers.peerAlarms[0].setView(watch.View{Verdict: watch.Held})
			if len(s.tries) != 0 {
				t.Fatalf("there are tries although the lock is left to a peer: %v", s.tries)
			}
			peers.peerAlarms[0].setView(watch.View{Verdict: watch.Free})
			if len(s.tries) != tries || s.ended != (tries > 0) || !peers.peerAlarms[0].stopped {
				t.Errorf("the lock is %d: tries %v", verdict, s.tries)
			}
			time.Sleep(2 * maxLeaveTime)
			if len(s.tries) != tries {
				t.Errorf("there are tries although the verdict is unchanged: %v", s.tries)
			}
			s.free.Store(true)
			s.queues.Released("k")
			synctest.Wait()
		})
	}
}

// TestAwaitLeaveTimeEnds checks that a process that does not take the lock that was left to it
// delays the waiter only for a limited time.
func TestAwaitLeaveTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peers := startLeftToPeer(t)
		s.free.Store(true)
		peers.peerAlarms[0].setView(watch.View{Verdict: watch.Held})
		time.Sleep(maxLeaveTime)
		synctest.Wait()
		if want := []time.Duration{maxLeaveTime}; !slices.Equal(s.tries, want) || !s.ended {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
	})
}

// TestAwaitWithoutPeers checks that a wait without other processes needs no marks and no questions.
func TestAwaitWithoutPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		peers := &fakePeers{alone: true}
		s := startWaitWithPeers(ctx, peers)
		s.queues.Released("k")
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(s.tries) != 2 || len(peers.marks)+peers.asks+peers.passes+peers.unmarks > 0 {
			t.Errorf("tries %v, %+v", s.tries, peers)
		}
	})
}
