package register

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// fenced is for the key k, with a fence.
func fenced(token string) Terms {
	t := taking(token)
	t.Fence = true
	return t
}

// fence takes k with a fence, and fails the test unless that is granted.
func (b *bench) fence(r *Register, token string) int64 {
	b.Helper()
	got, err := r.Lock(b.Context(), []string{"k"}, fenced(token))
	if err != nil {
		b.Fatalf("LOCK %s FENCE: %v", token, err)
	}
	return got.Fence
}

// wantCounters wants the masters to have these fence counters: 0 for none.
func (b *bench) wantCounters(want string) {
	b.Helper()
	all := make([]string, len(b.stores))
	for i, s := range b.stores {
		all[i] = strconv.FormatInt(cell.ParseFence(s.Look(cell.FenceKey("k")).Value.Text), 10)
	}
	if got := strings.Join(all, " "); got != want {
		b.Errorf("the counters are %s, want %s", got, want)
	}
}

// counter sets the counter of k on some masters.
func (b *bench) counter(to int64, masters ...int) {
	for _, m := range masters {
		b.stores[m].Put(cell.FenceKey("k"), cell.Parse(strconv.FormatInt(to, 10)), time.Hour)
	}
}

// Two proxies take a lock in turns: one round trip for each, and each fence is higher than the
// last.
func TestFencesOfTwoProxies(t *testing.T) {
	b := newBench(t, 5)
	b.floor = 1_700_000_000 * time.Second
	one, two := b.proxy(), b.proxy()
	last := int64(0)
	for i := range 6 {
		r := []*Register{one, two}[i%2]
		b.floor += time.Microsecond
		got := b.fence(r, "t")
		b.wantRounds("take")
		if got <= last || got != b.floor.Microseconds() {
			t.Errorf("fence %d after %d, at %d µs", got, last, b.floor.Microseconds())
		}
		last = got
		b.sure(r.Unlock(t.Context(), "k", "t", nil))
		b.rounds = nil
	}
}

// Where the clocks stand still, or have gone back, the counters alone keep the order: the masters
// refuse the same number again, and tell, without a pause.
func TestFenceThatIsTooLow(t *testing.T) {
	b := newBench(t, 3)
	b.floor = 70 * time.Microsecond
	one, two := b.proxy(), b.proxy()
	if got := b.fence(one, "t"); got != 70 {
		t.Fatalf("fence %d", got)
	}
	b.sure(one.Unlock(t.Context(), "k", "t", nil))
	b.rounds, b.floor = nil, 50*time.Microsecond
	if got := b.fence(two, "u"); got != 71 {
		t.Errorf("fence %d", got)
	}
	b.wantRounds("take take")
	if b.pauses != 0 {
		t.Error("it paused")
	}
	b.wantCounters("71 71 71")
	b.wantHolds("u u u")
}

// A LOCK that is told nil learns the fence of the one that holds it.
func TestHeldTellsTheFence(t *testing.T) {
	b := newBench(t, 3)
	one, two := b.proxy(), b.proxy()
	for range 3 {
		b.fence(one, "t")
		b.sure(one.Unlock(t.Context(), "k", "t", nil))
	}
	b.fence(one, "t")
	if _, err := two.Lock(t.Context(), []string{"k"}, fenced("u")); !errors.Is(err, ErrHeld) {
		t.Fatal(err)
	}
	b.sure(one.Unlock(t.Context(), "k", "t", nil))
	b.rounds = nil
	if got := b.fence(two, "u"); got != 5 {
		t.Errorf("fence %d, want 5", got)
	}
	b.wantRounds("take")
}

// What one master alone was told is too high is no reason for the others to go there: they have a
// majority, and their numbers are not used up.
func TestOneCounterThatIsFarAhead(t *testing.T) {
	b := newBench(t, 3)
	b.counter(cell.MaxFence, 2)
	b.counter(41, 0, 1)
	if got := b.fence(b.proxy(), "t"); got != 42 {
		t.Errorf("fence %d", got)
	}
	b.wantCounters("42 42 " + strconv.Itoa(cell.MaxFence))
	b.pass(time.Second)
	b.wantHolds("t t t") // it is taken there, without a fence
}

func TestFencesUsedUp(t *testing.T) {
	b := newBench(t, 3)
	b.counter(cell.MaxFence, 0, 1)
	if _, err := b.proxy().Lock(t.Context(), []string{"k"}, fenced("t")); !errors.Is(err, ErrFences) {
		t.Errorf("%v", err)
	}
	b.pay()
	b.wantHolds(". . .")
}

// The counters are gone after a week; the clocks have gone on.
func TestCountersExpire(t *testing.T) {
	b := newBench(t, 3)
	b.floor = b.stores[0].Now
	last := b.fence(b.proxy(), "t")
	b.pass(8 * 24 * time.Hour)
	b.wantCounters("0 0 0")
	r := b.proxy()
	if got, err := r.Fence(t.Context(), "k"); got != 0 || err != nil {
		t.Errorf("FENCE: %d, %v", got, err)
	}
	b.floor = b.stores[0].Now
	if got := b.fence(r, "u"); got <= last {
		t.Errorf("fence %d after %d", got, last)
	}
}

// One master forgot its counter, and one does not answer: the one that is left refuses.
func TestForgottenCounter(t *testing.T) {
	b := newBench(t, 3)
	b.counter(100, 0, 1)
	b.at(unsent, 2)
	b.stores[0].Delete(cell.FenceKey("k"))
	if _, err := b.proxy().Lock(t.Context(), []string{"k"}, fenced("t")); err == nil {
		t.Error("granted by one that forgot and one that refused")
	}
}

// After a removal by ballot the lock comes by ballot, and its fence with a round of its own, which
// only masters accept that hold the lock.
func TestFenceByBallot(t *testing.T) {
	b := newBench(t, 5)
	b.accepted("", 3, 0, 1, 2, 3)
	b.counter(9, 0, 1, 2, 3, 4)
	if got := b.fence(b.proxy(), "t"); got != 10 {
		t.Errorf("fence %d", got)
	}
	b.wantHolds("t* t* t* t* .")
	b.wantCounters("10 10 10 10 9")
	b.wantRounds("take prepare prepare accept raise")
}

// The counters are higher than what the proxy proposes: it goes on above them.
func TestRaiseAgain(t *testing.T) {
	b := newBench(t, 3)
	b.accepted("", 3, 0, 1, 2)
	b.fate = func(_ int, op cell.Op) fate {
		if r, is := op.(cell.Raise); is && r.Fence == 1 {
			b.counter(30, 0)
			b.counter(20, 1, 2)
		}
		return done
	}
	if got := b.fence(b.proxy(), "t"); got != 21 {
		t.Errorf("fence %d", got) // two of three accept it
	}
	b.wantCounters("30 21 21")
}

// A lock without a fence is none: it is withdrawn.
func TestNoFenceNoLock(t *testing.T) {
	for name, disturb := range map[string]func(b *bench){
		"no majority answers":     func(b *bench) { b.of("raise", unsent, 0, 1) },
		"no majority has a vote":  func(b *bench) { b.of("raise", outside, 0, 1) },
		"a majority has lost it":  func(b *bench) { b.fate = b.losing },
		"it takes until the end":  func(b *bench) { b.fate = b.taking("raise", 9950*time.Millisecond) },
		"and the round too long":  func(b *bench) { b.fate = b.taking("raise", 2*time.Second) },
		"they are still underway": func(b *bench) { b.of("raise", slow, 0, 1, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 3)
			b.accepted("", 3, 0, 1, 2)
			disturb(b)
			r := b.proxy()
			got, err := r.Lock(t.Context(), []string{"k"}, b.owing(r, fenced("t")))
			var none *NoQuorum
			if !errors.As(err, &none) {
				t.Errorf("%+v, %v", got, err)
			}
			b.fate = nil
			b.pass(time.Second)
			b.deliver()
			b.pay()
			if held := b.holds("k"); strings.Contains(held, "t") {
				t.Errorf("the masters hold %s", held)
			}
		})
	}
}

// losing has the lock vanish from two masters before their counters are raised.
func (b *bench) losing(_ int, op cell.Op) fate {
	if kindOf(op) == "raise" {
		b.stores[0].Delete("k")
		b.stores[1].Delete("k")
	}
	return done
}

// taking has each operation of a kind take so long.
func (b *bench) taking(kind string, d time.Duration) func(int, cell.Op) fate {
	return func(m int, op cell.Op) fate {
		if kindOf(op) == kind && m == 0 {
			b.clock(b.now.Add(d))
		}
		return done
	}
}

// A rival's take has reached masters that do not hold the lock before that gets its fence by
// ballot, and reaches others when its lease is over. It must not be granted with a lower number: so
// masters that do not hold the lock do not accept its fence, and where fewer than a majority are
// left it is withdrawn.
func TestRivalBeganBefore(t *testing.T) {
	for _, silent := range [][]int{nil, {3, 4}} {
		b := newBench(t, 5)
		b.accepted("", 3, 2, 3, 4)
		one, two := b.proxy(), b.proxy()
		two.fences.saw("k", 49)
		one.fences.saw("k", 50)
		first, took := Granted{}, false
		b.fate = func(m int, op cell.Op) fate {
			if rival, is := op.(cell.Take); !is || rival.Fence != 50 || m != 2 || took {
				return done
			}
			took = true
			b.of("raise", unsent, silent...)
			var err error
			brief := fenced("t")
			brief.TTL = 100 * time.Millisecond
			first, err = one.Lock(b.Context(), []string{"k"}, brief)
			t.Logf("silent %v: %d, %v", silent, first.Fence, err)
			if silent == nil {
				b.sure(err)
			}
			b.fate = nil
			b.clock(b.now.Add(brief.TTL)) // its lease ends
			return done
		}
		second := b.fence(two, "u")
		if !took || second <= first.Fence {
			t.Errorf("silent %v: fence %d after %d", silent, second, first.Fence)
		}
	}
}

// Nothing that stays is left on masters that do not vote: a new cluster begins with empty ones.
func TestNoFenceWithoutVotes(t *testing.T) {
	b := newBench(t, 3)
	b.voters = 1
	b.at(outside, 0, 1)
	if _, err := b.proxy().Lock(t.Context(), []string{"k"}, fenced("t")); err == nil {
		t.Error("granted")
	}
	b.wantCounters("0 0 0")
	b.fate = nil // the votes come while it is asked
	got := b.fence(b.proxy(), "u")
	if got != 1 {
		t.Errorf("fence %d", got)
	}
	b.wantCounters("1 1 1")
}

func TestFence(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	want := b.fence(r, "t")
	b.stores[0].Delete(cell.FenceKey("k"))
	b.rounds = nil
	if got, err := r.Fence(t.Context(), "k"); got != want || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	b.wantRounds("read")
	b.at(unsent, 1, 2)
	if _, err := r.Fence(t.Context(), "k"); !errors.As(err, new(*NoQuorum)) {
		t.Errorf("%v", err)
	}
}

// What the proxy remembers is bounded; what it forgot the masters tell.
func TestFencesAreForgotten(t *testing.T) {
	f := fences{byKey: map[string]int64{}}
	for i := range 2 * mostFences {
		f.saw(strconv.Itoa(i), 1)
	}
	f.saw(strings.Repeat("k", longestFenced+1), 1)
	if len(f.byKey) > mostFences || f.last(strings.Repeat("k", longestFenced+1)) != 0 {
		t.Errorf("%d keys", len(f.byKey))
	}
	f.saw("k", 7)
	f.saw("k", 5)
	if f.last("k") != 7 {
		t.Errorf("%d", f.last("k"))
	}
}
