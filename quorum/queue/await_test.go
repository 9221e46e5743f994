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

// fakeAlarm shows a view, and records calls. It is used in one synctest bubble.
type fakeAlarm struct {
	bell    chan struct{}
	view    watch.View
	looks   int
	stopped bool
	ended   bool
}

func (a *fakeAlarm) Changes() <-chan struct{}  { return a.bell }
func (a *fakeAlarm) View(time.Time) watch.View { return a.view }
func (a *fakeAlarm) Read(time.Time)            { a.looks++ }
func (a *fakeAlarm) ReadAll()                  { a.looks++ }
func (a *fakeAlarm) Arm()                      { a.looks++ }
func (a *fakeAlarm) Ended() bool               { return a.ended }
func (a *fakeAlarm) Stop()                     { a.stopped = true }

func (a *fakeAlarm) shows(v watch.View) {
	a.view = v
	a.bell <- struct{}{}
	synctest.Wait()
}

// lockWaiter is a waiter for a lock that another process holds.
type lockWaiter struct {
	queues Queues[string]
	alarm  *fakeAlarm
	alarms int // number of alarms set
	free   atomic.Bool
	// quorum, if it is set, is closed when a majority votes again. Until then a try has no result.
	quorum chan struct{}
	// undecided makes a try end without a result although a majority votes.
	undecided bool
	// trying is called in each try, before its result is determined.
	trying func()
	tries  []time.Duration // since the start
	ended  WaitResult
	done   bool
}

// startWait starts a wait; over may be nil.
func startWait(ctx context.Context, over <-chan time.Time) *lockWaiter {
	s := &lockWaiter{alarm: &fakeAlarm{bell: make(chan struct{}, 1)}}
	s.begin(ctx, over)
	return s
}

// startWaitWithPeers starts a wait next to other processes.
func startWaitWithPeers(ctx context.Context, others *fakePeers) *lockWaiter {
	s := &lockWaiter{alarm: &fakeAlarm{bell: make(chan struct{}, 1)}}
	s.queues.Peers = others
	s.begin(ctx, nil)
	return s
}

// begin starts the wait; over may be nil.
func (s *lockWaiter) begin(ctx context.Context, over <-chan time.Time) {
	begun := time.Now()
	go func() {
		s.ended = s.queues.Await(ctx, Waiting[string]{
			Key: "k", Over: over, Rand: func() float64 { return 1 }, Alarm: func() Alarm { s.alarms++; return s.alarm },
			Quorum: func() <-chan struct{} { return s.quorum },
			Try: func() TryResult {
				s.tries = append(s.tries, time.Since(begun))
				if s.trying != nil {
					s.trying()
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
		s.done = true
	}()
	synctest.Wait()
}

// TestAwaitIsWoken: while the lock is held there is no try. When the alarm rings there is a try at
// once.
func TestAwaitIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		s.alarm.shows(watch.View{Verdict: watch.Held, End: time.Now().Add(time.Hour)})
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		s.free.Store(true)
		s.alarm.shows(watch.View{Verdict: watch.Changed})
		if want := []time.Duration{0, 30 * time.Minute}; !slices.Equal(s.tries, want) || !s.done || s.ended != Done {
			t.Errorf("tries at %v, want %v; done %v", s.tries, want, s.done)
		}
		if s.alarm.looks != 1 || !s.alarm.stopped {
			t.Errorf("%d looks, stopped %v", s.alarm.looks, s.alarm.stopped)
		}
	})
}

// TestAwaitTriesAtTheEnd: if the alarm does not ring, there is a try when the lease expires.
func TestAwaitTriesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		s.alarm.shows(watch.View{Verdict: watch.Held, End: time.Now().Add(time.Minute)})
		s.free.Store(true)
		time.Sleep(time.Minute + endSpread)
		synctest.Wait()
		if want := []time.Duration{0, time.Minute + endSpread}; !slices.Equal(s.tries, want) {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
	})
}

// TestAwaitPolls: without information from the alarm the head polls.
func TestAwaitPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		s := startWait(ctx, nil)
		time.Sleep(time.Second)
		leave()
		synctest.Wait()
		if n := len(s.tries); n < 25 || n > 40 {
			t.Errorf("%d tries in a second", n)
		}
		if waits, _ := s.queues.Waits("k"); !s.done || s.ended != Left || !s.alarm.stopped || waits {
			t.Errorf("it has not left: %+v", s)
		}
	})
}

// TestAwaitIsReleasedHere: a release in this process does not wait for the alarm. A wait ends at
// its time limit.
func TestAwaitIsReleasedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), time.After(time.Minute))
		s.alarm.shows(watch.View{Verdict: watch.Held})
		time.Sleep(time.Second)
		s.queues.Released("k")
		synctest.Wait()
		if want := []time.Duration{0, time.Second}; !slices.Equal(s.tries, want) {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
		s.alarm.shows(watch.View{Verdict: watch.Held})
		time.Sleep(time.Minute)
		synctest.Wait()
		if !s.done || s.ended != Over {
			t.Errorf("done %v, ended %d", s.done, s.ended)
		}
	})
}

// TestAwaitIsReleasedMeanwhile: a refused try does not prove that another process holds the lock if
// there was a release in this process meanwhile. The head tries again at once.
func TestAwaitIsReleasedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		place := s.queues.Enter("k") // keeps the queue
		s.trying = func() {
			if len(s.tries) == 2 {
				s.queues.Released("k")
			} else {
				s.free.Store(true)
			}
		}
		s.queues.Released("k")
		synctest.Wait()
		if want := []time.Duration{0, 0, 0}; !slices.Equal(s.tries, want) || !s.done {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
		if s.alarm.looks != 1 {
			t.Errorf("another process is thought to have it; %d looks", s.alarm.looks)
		}
		s.queues.Leave(place, false)
	})
}

// TestAwaitSetsAnotherAlarm: after a change of the masters the old alarm has ended, and a new one
// is set.
func TestAwaitSetsAnotherAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		s := startWait(ctx, nil)
		before := s.alarm
		before.shows(watch.View{Verdict: watch.Held})
		s.alarm = &fakeAlarm{bell: make(chan struct{}, 1), view: watch.View{Verdict: watch.Held}}
		before.ended = true
		before.shows(watch.View{})
		time.Sleep(time.Second)
		synctest.Wait()
		if s.alarms != 2 || !before.stopped || s.alarm.looks == 0 {
			t.Errorf("%d alarms were set, the first one stopped: %v; %d looks", s.alarms, before.stopped, s.alarm.looks)
		}
		leave()
		synctest.Wait()
	})
}

// TestAwaitWaitsForAQuorum: while too few masters vote there is no try, even if the alarm rings.
// When a majority votes there is a try at once.
func TestAwaitWaitsForAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), nil)
		back := make(chan struct{})
		s.quorum = back
		s.alarm.shows(watch.View{Verdict: watch.Changed})
		time.Sleep(time.Minute)
		s.alarm.bell <- struct{}{}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(s.tries); n != 2 {
			t.Errorf("tries at %v, want two", s.tries)
		}
		s.quorum = nil
		s.free.Store(true)
		begun := time.Now()
		close(back)
		synctest.Wait()
		if !s.done || s.ended != Done || time.Since(begun) > 0 {
			t.Errorf("done %v, ended %d", s.done, s.ended)
		}
		if _, open := s.queues.Waits("k"); open || len(s.tries) != 3 {
			t.Errorf("tries at %v", s.tries)
		}
	})
}

// TestAwaitEndsOpen: a wait that ends while the holder is unknown returns Open, for every place in
// the queue.
func TestAwaitEndsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), time.After(time.Minute))
		s.quorum = make(chan struct{})
		s.alarm.shows(watch.View{Verdict: watch.Changed})
		behind := Done
		go func() {
			behind = s.queues.Await(t.Context(), Waiting[string]{
				Key: "k", Over: time.After(time.Second), Rand: func() float64 { return 1 },
				Quorum: func() <-chan struct{} { return s.quorum },
			})
		}()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if behind != Open || !s.done || s.ended != Open {
			t.Errorf("the head ended %d, the one behind %d, want %d", s.ended, behind, Open)
		}
	})
}

// TestAwaitUndecided: if a majority votes but the holder remains unknown, the tries become less
// frequent, and the wait returns Open.
func TestAwaitUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWait(t.Context(), time.After(time.Minute))
		s.undecided = true
		s.alarm.shows(watch.View{Verdict: watch.Changed})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(s.tries); n < 60 || n > 75 || s.ended != Open {
			t.Errorf("%d tries in a minute, ended %d", n, s.ended)
		}
	})
}

// TestAwaitIsPassedTheLock: a waiter has a mark for other processes, and tries as soon as one
// leaves the lock to it. If the try fails, it gets a new mark.
func TestAwaitIsPassedTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakePeers{}
		s := startWaitWithPeers(t.Context(), others)
		held := watch.View{Verdict: watch.Held, End: time.Now().Add(time.Hour)}
		s.alarm.shows(held)
		if len(others.marks) != 1 || others.marks[0].puts != 1 {
			t.Fatalf("marks %v", others.marks)
		}
		others.marks[0].shows(held)
		time.Sleep(time.Minute)
		if len(s.tries) != 1 {
			t.Errorf("it tries although the lock was not left to it: %v", s.tries)
		}
		others.marks[0].shows(watch.View{Verdict: watch.Changed})
		if len(s.tries) != 2 || !others.marks[0].stopped || len(others.marks) != 2 || others.marks[1].puts != 1 {
			t.Fatalf("tries %v, %d marks", s.tries, len(others.marks))
		}
		s.free.Store(true)
		others.marks[1].shows(watch.View{Verdict: watch.Free})
		if len(s.tries) != 3 || !s.done || others.unmarked != 1 {
			t.Errorf("tries %v, done %v, unmarked %d times", s.tries, s.done, others.unmarked)
		}
	})
}

// startLeftToPeer starts a wait for a lock that was just left to another process.
func startLeftToPeer(t *testing.T) (*lockWaiter, *fakePeers) {
	others := &fakePeers{next: "other"}
	s := &lockWaiter{alarm: &fakeAlarm{bell: make(chan struct{}, 1)}}
	s.queues.Peers = others
	s.queues.Leave(s.queues.Enter("k"), true)
	s.queues.Released("k")
	s.begin(t.Context(), nil)
	if len(s.tries) != 0 || len(others.marks) != 1 || len(others.lefts) != 1 || s.alarm.looks != 1 {
		t.Fatalf("tries %v, %d marks, %d of others, %d looks", s.tries, len(others.marks), len(others.lefts), s.alarm.looks)
	}
	return s, others
}

// TestAwaitYields: a waiter that leaves the lock to another process gets a mark at once, and tries
// when the lock is left to this process.
func TestAwaitYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, others := startLeftToPeer(t)
		s.free.Store(true)
		others.marks[0].shows(watch.View{Verdict: watch.Changed})
		if len(s.tries) != 1 || !s.done || !others.lefts[0].stopped {
			t.Errorf("tries %v", s.tries)
		}
	})
}

// TestAwaitAfterPeer: once the mark of the process to which the lock was left is gone, the waiter
// acts by the state of the lock. It waits while that process holds it, and tries at once if it is
// free.
func TestAwaitAfterPeer(t *testing.T) {
	for verdict, tries := range map[watch.Verdict]int{watch.Held: 0, watch.Free: 1} {
		synctest.Test(t, func(t *testing.T) {
			s, others := startLeftToPeer(t)
			s.free.Store(verdict == watch.Free)
			s.alarm.shows(watch.View{Verdict: verdict})
			others.lefts[0].shows(watch.View{Verdict: watch.Held})
			if len(s.tries) != 0 {
				t.Fatalf("it does not wait for who comes first: %v", s.tries)
			}
			others.lefts[0].shows(watch.View{Verdict: watch.Free})
			if len(s.tries) != tries || s.done != (tries > 0) || !others.lefts[0].stopped {
				t.Errorf("the lock is %d: tries %v", verdict, s.tries)
			}
			time.Sleep(2 * maxLeaveTime)
			if len(s.tries) != tries {
				t.Errorf("it does not wait for who has it: %v", s.tries)
			}
			s.free.Store(true)
			s.queues.Released("k")
			synctest.Wait()
		})
	}
}

// TestAwaitYieldEnds: a process that does not take the lock that was left to it delays the waiter
// only for a limited time.
func TestAwaitYieldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, others := startLeftToPeer(t)
		s.free.Store(true)
		others.lefts[0].shows(watch.View{Verdict: watch.Held})
		time.Sleep(maxLeaveTime)
		synctest.Wait()
		if want := []time.Duration{maxLeaveTime}; !slices.Equal(s.tries, want) || !s.done {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
	})
}

// TestAwaitIsAlone: without other processes there are no marks and no questions.
func TestAwaitIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		others := &fakePeers{alone: true}
		s := startWaitWithPeers(ctx, others)
		s.queues.Released("k")
		synctest.Wait()
		leave()
		synctest.Wait()
		if len(s.tries) != 2 || len(others.marks)+others.asked+others.passed+others.unmarked > 0 {
			t.Errorf("tries %v, %+v", s.tries, others)
		}
	})
}
