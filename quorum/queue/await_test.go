package queue

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/quorum/wake"
)

// fakeAlarm shows a view, and notes what is done with it. All of it happens in one bubble, one
// after the other.
type fakeAlarm struct {
	bell    chan struct{}
	view    wake.View
	looks   int
	stopped bool
	ended   bool
}

func (a *fakeAlarm) Bell() <-chan struct{}    { return a.bell }
func (a *fakeAlarm) View(time.Time) wake.View { return a.view }
func (a *fakeAlarm) Look(time.Time)           { a.looks++ }
func (a *fakeAlarm) LookAnew()                { a.looks++ }
func (a *fakeAlarm) Arm()                     { a.looks++ }
func (a *fakeAlarm) Ended() bool              { return a.ended }
func (a *fakeAlarm) Stop()                    { a.stopped = true }

func (a *fakeAlarm) shows(v wake.View) {
	a.view = v
	a.bell <- struct{}{}
	synctest.Wait()
}

// stand is one who waits for a lock that others hold.
type stand struct {
	queues Queues[string]
	alarm  *fakeAlarm
	alarms int // that were set
	free   atomic.Bool
	// quorum, if it is set, is closed when a majority votes again: until then a try tells nothing.
	quorum chan struct{}
	// puzzling has a try tell nothing although a majority votes.
	puzzling bool
	// trying is called in each try, before it is known what came of it.
	trying func()
	tries  []time.Duration // since the beginning
	ended  Ended
	done   bool
}

// waits has one wait; over may be nil.
func waits(ctx context.Context, over <-chan time.Time) *stand {
	s := &stand{alarm: &fakeAlarm{bell: make(chan struct{}, 1)}}
	s.begin(ctx, over)
	return s
}

// waitsBeside has one wait where there are other processes.
func waitsBeside(ctx context.Context, others *fakeOthers) *stand {
	s := &stand{alarm: &fakeAlarm{bell: make(chan struct{}, 1)}}
	s.queues.Others = others
	s.begin(ctx, nil)
	return s
}

// begin begins the wait; over may be nil.
func (s *stand) begin(ctx context.Context, over <-chan time.Time) {
	begun := time.Now()
	go func() {
		s.ended = s.queues.Await(ctx, Waiting[string]{
			Key: "k", Over: over, Rand: func() float64 { return 1 }, Alarm: func() Alarm { s.alarms++; return s.alarm },
			Quorum: func() <-chan struct{} { return s.quorum },
			Try: func() Tried {
				s.tries = append(s.tries, time.Since(begun))
				if s.trying != nil {
					s.trying()
				}
				switch {
				case s.puzzling, s.quorum != nil:
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

// TestAwaitIsWoken: nothing is tried while the lock is held, and it is tried at once when the alarm
// rings.
func TestAwaitIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waits(t.Context(), nil)
		s.alarm.shows(wake.View{Verdict: wake.Held, End: time.Now().Add(time.Hour)})
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		s.free.Store(true)
		s.alarm.shows(wake.View{Verdict: wake.Changed})
		if want := []time.Duration{0, 30 * time.Minute}; !slices.Equal(s.tries, want) || !s.done || s.ended != Done {
			t.Errorf("tries at %v, want %v; done %v", s.tries, want, s.done)
		}
		if s.alarm.looks != 1 || !s.alarm.stopped {
			t.Errorf("%d looks, stopped %v", s.alarm.looks, s.alarm.stopped)
		}
	})
}

// TestAwaitTriesAtTheEnd: the alarm does not ring, and the lease ends.
func TestAwaitTriesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waits(t.Context(), nil)
		s.alarm.shows(wake.View{Verdict: wake.Held, End: time.Now().Add(time.Minute)})
		s.free.Store(true)
		time.Sleep(time.Minute + endSpread)
		synctest.Wait()
		if want := []time.Duration{0, time.Minute + endSpread}; !slices.Equal(s.tries, want) {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
	})
}

// TestAwaitPolls: the alarm knows nothing.
func TestAwaitPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		s := waits(ctx, nil)
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

// TestAwaitIsReleasedHere: a release in this process does not wait for the alarm; a wait ends when
// its time is over.
func TestAwaitIsReleasedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waits(t.Context(), time.After(time.Minute))
		s.alarm.shows(wake.View{Verdict: wake.Held})
		time.Sleep(time.Second)
		s.queues.Released("k")
		synctest.Wait()
		if want := []time.Duration{0, time.Second}; !slices.Equal(s.tries, want) {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
		s.alarm.shows(wake.View{Verdict: wake.Held})
		time.Sleep(time.Minute)
		synctest.Wait()
		if !s.done || s.ended != Over {
			t.Errorf("done %v, ended %d", s.done, s.ended)
		}
	})
}

// TestAwaitIsReleasedMeanwhile: a try that was refused tells of no other process where a release of
// this one was told meanwhile, since it may have been refused for that one's lock. It is tried
// again at once.
func TestAwaitIsReleasedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waits(t.Context(), nil)
		place := s.queues.Enter("k") // sees to it that the queue is kept
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

// TestAwaitSetsAnotherAlarm: where the masters were changed, the alarm of before knows nothing any
// more.
func TestAwaitSetsAnotherAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		s := waits(ctx, nil)
		before := s.alarm
		before.shows(wake.View{Verdict: wake.Held})
		s.alarm = &fakeAlarm{bell: make(chan struct{}, 1), view: wake.View{Verdict: wake.Held}}
		before.ended = true
		before.shows(wake.View{})
		time.Sleep(time.Second)
		synctest.Wait()
		if s.alarms != 2 || !before.stopped || s.alarm.looks == 0 {
			t.Errorf("%d alarms were set, the first one stopped: %v; %d looks", s.alarms, before.stopped, s.alarm.looks)
		}
		leave()
		synctest.Wait()
	})
}

// TestAwaitWaitsForAQuorum: while too few masters vote nothing is tried, whatever rings; then it is
// at once.
func TestAwaitWaitsForAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waits(t.Context(), nil)
		back := make(chan struct{})
		s.quorum = back
		s.alarm.shows(wake.View{Verdict: wake.Changed})
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

// TestAwaitEndsOpen: a wait that ends while it is not known who holds the lock says so: of the
// head, and of one behind it.
func TestAwaitEndsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waits(t.Context(), time.After(time.Minute))
		s.quorum = make(chan struct{})
		s.alarm.shows(wake.View{Verdict: wake.Changed})
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

// TestAwaitIsPuzzled: where a majority votes and does not tell who holds the lock, it is tried ever
// less often, and the wait ends open.
func TestAwaitIsPuzzled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := waits(t.Context(), time.After(time.Minute))
		s.puzzling = true
		s.alarm.shows(wake.View{Verdict: wake.Changed})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(s.tries); n < 60 || n > 75 || s.ended != Open {
			t.Errorf("%d tries in a minute, ended %d", n, s.ended)
		}
	})
}

// TestAwaitIsPassedTheLock: one who waits is known to others, and tries as soon as one leaves the
// lock to it; where that is in vain it is marked anew.
func TestAwaitIsPassedTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakeOthers{}
		s := waitsBeside(t.Context(), others)
		held := wake.View{Verdict: wake.Held, End: time.Now().Add(time.Hour)}
		s.alarm.shows(held)
		if len(others.marks) != 1 || others.marks[0].puts != 1 {
			t.Fatalf("marks %v", others.marks)
		}
		others.marks[0].shows(held)
		time.Sleep(time.Minute)
		if len(s.tries) != 1 {
			t.Errorf("it tries although the lock was not left to it: %v", s.tries)
		}
		others.marks[0].shows(wake.View{Verdict: wake.Changed})
		if len(s.tries) != 2 || !others.marks[0].stopped || len(others.marks) != 2 || others.marks[1].puts != 1 {
			t.Fatalf("tries %v, %d marks", s.tries, len(others.marks))
		}
		s.free.Store(true)
		others.marks[1].shows(wake.View{Verdict: wake.Free})
		if len(s.tries) != 3 || !s.done || others.unmarked != 1 {
			t.Errorf("tries %v, done %v, unmarked %d times", s.tries, s.done, others.unmarked)
		}
	})
}

// yields has one wait for a lock that was just left to another process.
func yields(t *testing.T) (*stand, *fakeOthers) {
	others := &fakeOthers{next: "other"}
	s := &stand{alarm: &fakeAlarm{bell: make(chan struct{}, 1)}}
	s.queues.Others = others
	s.queues.Leave(s.queues.Enter("k"), true)
	s.queues.Released("k")
	s.begin(t.Context(), nil)
	if len(s.tries) != 0 || len(others.marks) != 1 || len(others.lefts) != 1 || s.alarm.looks != 1 {
		t.Fatalf("tries %v, %d marks, %d of others, %d looks", s.tries, len(others.marks), len(others.lefts), s.alarm.looks)
	}
	return s, others
}

// TestAwaitYields: one for whom others come first is known to them at once, and tries when they
// have left the lock to this process.
func TestAwaitYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, others := yields(t)
		s.free.Store(true)
		others.marks[0].shows(wake.View{Verdict: wake.Changed})
		if len(s.tries) != 1 || !s.done || !others.lefts[0].stopped {
			t.Errorf("tries %v", s.tries)
		}
	})
}

// TestAwaitSeesThatTheyHadIt: once the mark of who a lock was left to has gone, one who yields goes
// by what the lock shows: it waits while that one has it, and tries at once where it was given back
// already, or was not wanted any more.
func TestAwaitSeesThatTheyHadIt(t *testing.T) {
	for verdict, tries := range map[wake.Verdict]int{wake.Held: 0, wake.Free: 1} {
		synctest.Test(t, func(t *testing.T) {
			s, others := yields(t)
			s.free.Store(verdict == wake.Free)
			s.alarm.shows(wake.View{Verdict: verdict})
			others.lefts[0].shows(wake.View{Verdict: wake.Held})
			if len(s.tries) != 0 {
				t.Fatalf("it does not wait for who comes first: %v", s.tries)
			}
			others.lefts[0].shows(wake.View{Verdict: wake.Free})
			if len(s.tries) != tries || s.done != (tries > 0) || !others.lefts[0].stopped {
				t.Errorf("the lock is %d: tries %v", verdict, s.tries)
			}
			time.Sleep(2 * longestGap)
			if len(s.tries) != tries {
				t.Errorf("it does not wait for who has it: %v", s.tries)
			}
			s.free.Store(true)
			s.queues.Released("k")
			synctest.Wait()
		})
	}
}

// TestAwaitDoesNotYieldForEver: one to whom a lock was left, and who does not come, has a gap.
func TestAwaitDoesNotYieldForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, others := yields(t)
		s.free.Store(true)
		others.lefts[0].shows(wake.View{Verdict: wake.Held})
		time.Sleep(longestGap)
		synctest.Wait()
		if want := []time.Duration{longestGap}; !slices.Equal(s.tries, want) || !s.done {
			t.Errorf("tries at %v, want %v", s.tries, want)
		}
	})
}

// TestAwaitIsAlone: where no other process is known nothing is told to any.
func TestAwaitIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		others := &fakeOthers{alone: true}
		s := waitsBeside(ctx, others)
		s.queues.Released("k")
		synctest.Wait()
		leave()
		synctest.Wait()
		if len(s.tries) != 2 || len(others.marks)+others.asked+others.passed+others.unmarked > 0 {
			t.Errorf("tries %v, %+v", s.tries, others)
		}
	})
}
