package register

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func fencedOptions(token string) TakeOptions {
	t := takeOptions(token)
	t.Fence = true
	return t
}

// mustLockWithFence takes k with a fence, or fails the test.
func (b *fakeMasters) mustLockWithFence(r *Register, token string) int64 {
	b.Helper()
	got, err := r.Lock(b.Context(), []string{"k"}, fencedOptions(token))
	if err != nil {
		b.Fatalf("LOCK %s FENCE: %v", token, err)
	}
	return got.Fence
}

// wantCounters checks the fence counters of the masters; 0 means none.
func (b *fakeMasters) wantCounters(want string) {
	b.Helper()
	all := make([]string, len(b.stores))
	for i, s := range b.stores {
		all[i] = strconv.FormatInt(cell.ParseFence(s.Get(cell.FenceKey("k")).Value.Text), 10)
	}
	if got := strings.Join(all, " "); got != want {
		b.Errorf("the counters are %s, want %s", got, want)
	}
}

func (b *fakeMasters) putCounter(value int64, masters ...int) {
	for _, m := range masters {
		b.stores[m].Put(cell.FenceKey("k"), cell.Parse(strconv.FormatInt(value, 10)), time.Hour)
	}
}

// TestFencesOfTwoProxies lets two proxies take turns, each in one round trip with a higher fence.
func TestFencesOfTwoProxies(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.clock = 1_700_000_000 * time.Second
	one, two := b.proxy(), b.proxy()
	last := int64(0)
	for i := range 6 {
		r := []*Register{one, two}[i%2]
		b.clock += time.Microsecond
		got := b.mustLockWithFence(r, "t")
		b.wantRounds("take")
		if got <= last || got != b.clock.Microseconds() {
			t.Errorf("fence %d after %d, at %d µs", got, last, b.clock.Microseconds())
		}
		last = got
		b.noError(r.Unlock(t.Context(), "k", "t", nil))
		b.rounds = nil
	}
}

// TestFenceTooLow checks that counters keep the order even if clocks go back. The masters refuse
// the low fence and return their counters, and the proxy retries without a pause.
func TestFenceTooLow(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.clock = 70 * time.Microsecond
	one, two := b.proxy(), b.proxy()
	if got := b.mustLockWithFence(one, "t"); got != 70 {
		t.Fatalf("fence %d", got)
	}
	b.noError(one.Unlock(t.Context(), "k", "t", nil))
	b.rounds, b.clock = nil, 50*time.Microsecond
	if got := b.mustLockWithFence(two, "u"); got != 71 {
		t.Errorf("fence %d", got)
	}
	b.wantRounds("take take")
	if b.pauses != 0 {
		t.Error("it paused")
	}
	b.wantCounters("71 71 71")
	b.wantCells("u u u")
}

// TestRefusalReturnsFence checks that a refused LOCK learns the fence of the present lock.
func TestRefusalReturnsFence(t *testing.T) {
	b := newFakeMasters(t, 3)
	one, two := b.proxy(), b.proxy()
	for range 3 {
		b.mustLockWithFence(one, "t")
		b.noError(one.Unlock(t.Context(), "k", "t", nil))
	}
	b.mustLockWithFence(one, "t")
	if _, err := two.Lock(t.Context(), []string{"k"}, fencedOptions("u")); !errors.Is(err, ErrHeld) {
		t.Fatal(err)
	}
	b.noError(one.Unlock(t.Context(), "k", "t", nil))
	b.rounds = nil
	if got := b.mustLockWithFence(two, "u"); got != 5 {
		t.Errorf("fence %d, want 5", got)
	}
	b.wantRounds("take")
}

// TestFarHigherCounter checks that a counter that is too high on one master does not affect the
// fences that the other masters accept.
func TestFarHigherCounter(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.putCounter(cell.MaxFence, 2)
	b.putCounter(41, 0, 1)
	if got := b.mustLockWithFence(b.proxy(), "t"); got != 42 {
		t.Errorf("fence %d", got)
	}
	b.wantCounters("42 42 " + strconv.Itoa(cell.MaxFence))
	b.advance(time.Second)
	b.wantCells("t t t") // the third master also holds the lock, without a fence
}

func TestFencesUsedUp(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.putCounter(cell.MaxFence, 0, 1)
	if _, err := b.proxy().Lock(t.Context(), []string{"k"}, fencedOptions("t")); !errors.Is(err, ErrFences) {
		t.Errorf("%v", err)
	}
	b.deliverRepeatedOps()
	b.wantCells(". . .")
}

// TestExpiryOfCounters checks that the clocks keep fences rising after the counters have expired.
func TestExpiryOfCounters(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.clock = b.stores[0].Now
	last := b.mustLockWithFence(b.proxy(), "t")
	b.advance(8 * 24 * time.Hour)
	b.wantCounters("0 0 0")
	r := b.proxy()
	if got, err := r.Fence(t.Context(), "k"); got != 0 || err != nil {
		t.Errorf("FENCE: %d, %v", got, err)
	}
	b.clock = b.stores[0].Now
	if got := b.mustLockWithFence(r, "u"); got <= last {
		t.Errorf("fence %d after %d", got, last)
	}
}

// TestForgottenCounter checks that one master that still has its counter suffices to refuse a low
// fence.
func TestForgottenCounter(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.putCounter(100, 0, 1)
	b.setFault(requestLost, 2)
	b.stores[0].Delete(cell.FenceKey("k"))
	if _, err := b.proxy().Lock(t.Context(), []string{"k"}, fencedOptions("t")); err == nil {
		t.Error("granted by one that forgot and one that refused")
	}
}

// TestFenceByBallot takes a lock by ballot, after a removal. The fence takes a round of its own, in
// which only masters that hold the lock accept.
func TestFenceByBallot(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.putAcceptedCell("", 3, 0, 1, 2, 3)
	b.putCounter(9, 0, 1, 2, 3, 4)
	if got := b.mustLockWithFence(b.proxy(), "t"); got != 10 {
		t.Errorf("fence %d", got)
	}
	b.wantCells("t* t* t* t* .")
	b.wantCounters("10 10 10 10 9")
	b.wantRounds("take prepare prepare accept raise")
}

// TestRepeatedRaise checks that the proxy raises a proposal that is below the counters.
func TestRepeatedRaise(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.putAcceptedCell("", 3, 0, 1, 2)
	b.faultOf = func(_ int, op cell.Op) fault {
		if r, isRaise := op.(cell.Raise); isRaise && r.Fence == 1 {
			b.putCounter(30, 0)
			b.putCounter(20, 1, 2)
		}
		return noFault
	}
	if got := b.mustLockWithFence(b.proxy(), "t"); got != 21 {
		t.Errorf("fence %d", got) // two of three masters accept it
	}
	b.wantCounters("30 21 21")
}

// TestNoFenceNoLock checks that the proxy withdraws a lock without its requested fence.
func TestNoFenceNoLock(t *testing.T) {
	for name, disturb := range map[string]func(b *fakeMasters){
		"no majority answers":     func(b *fakeMasters) { b.setFaultOn("raise", requestLost, 0, 1) },
		"no majority has a vote":  func(b *fakeMasters) { b.setFaultOn("raise", voteUncounted, 0, 1) },
		"a majority has lost it":  func(b *fakeMasters) { b.faultOf = b.loseLock },
		"it takes until the end":  func(b *fakeMasters) { b.faultOf = b.delay("raise", 9950*time.Millisecond) },
		"and the round too long":  func(b *fakeMasters) { b.faultOf = b.delay("raise", 2*time.Second) },
		"they are still underway": func(b *fakeMasters) { b.setFaultOn("raise", requestLate, 0, 1, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newFakeMasters(t, 3)
			b.putAcceptedCell("", 3, 0, 1, 2)
			disturb(b)
			r := b.proxy()
			got, err := r.Lock(t.Context(), []string{"k"}, b.withRemoval(r, fencedOptions("t")))
			var noQuorum *NoQuorum
			if !errors.As(err, &noQuorum) {
				t.Errorf("%+v, %v", got, err)
			}
			b.faultOf = nil
			b.advance(time.Second)
			b.deliverPending()
			b.deliverRepeatedOps()
			if cells := b.cells("k"); strings.Contains(cells, "t") {
				t.Errorf("the masters hold %s", cells)
			}
		})
	}
}

// loseLock deletes the lock on two masters before the raise.
func (b *fakeMasters) loseLock(_ int, op cell.Op) fault {
	if kindOf(op) == "raise" {
		b.stores[0].Delete("k")
		b.stores[1].Delete("k")
	}
	return noFault
}

// delay returns a faultOf that delays the operations of a kind.
func (b *fakeMasters) delay(kind string, d time.Duration) func(int, cell.Op) fault {
	return func(m int, op cell.Op) fault {
		if kindOf(op) == kind && m == 0 {
			b.setClock(b.now.Add(d))
		}
		return noFault
	}
}

// TestEarlierRival starts with a rival's take on masters that do not hold the lock, before the
// lock gets its fence. The take reaches the other masters when the lease of the lock has expired,
// and must not be granted with a lower fence. So only masters that hold the lock accept its fence.
// If these masters are no majority, the proxy withdraws the lock.
func TestEarlierRival(t *testing.T) {
	for _, unreachable := range [][]int{nil, {3, 4}} {
		b := newFakeMasters(t, 5)
		b.putAcceptedCell("", 3, 2, 3, 4)
		one, two := b.proxy(), b.proxy()
		two.fences.note("k", 49)
		one.fences.note("k", 50)
		first, firstTook := GrantedLock{}, false
		b.faultOf = func(m int, op cell.Op) fault {
			if rival, is := op.(cell.Take); !is || rival.Fence != 50 || m != 2 || firstTook {
				return noFault
			}
			firstTook = true
			b.setFaultOn("raise", requestLost, unreachable...)
			var err error
			shortTTLOptions := fencedOptions("t")
			shortTTLOptions.TTL = 100 * time.Millisecond
			first, err = one.Lock(b.Context(), []string{"k"}, shortTTLOptions)
			t.Logf("silent %v: %d, %v", unreachable, first.Fence, err)
			if unreachable == nil {
				b.noError(err)
			}
			b.faultOf = nil
			b.setClock(b.now.Add(shortTTLOptions.TTL)) // the lease expires
			return noFault
		}
		second := b.mustLockWithFence(two, "u")
		if !firstTook || second <= first.Fence {
			t.Errorf("silent %v: fence %d after %d", unreachable, second, first.Fence)
		}
	}
}

// TestNoFenceWithoutVotes checks that masters without a vote, as in a new cluster, get no counter.
func TestNoFenceWithoutVotes(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.voterCount = 1
	b.setFault(voteUncounted, 0, 1)
	if _, err := b.proxy().Lock(t.Context(), []string{"k"}, fencedOptions("t")); err == nil {
		t.Error("granted")
	}
	b.wantCounters("0 0 0")
	b.faultOf = nil // the masters begin to vote during the attempt
	got := b.mustLockWithFence(b.proxy(), "u")
	if got != 1 {
		t.Errorf("fence %d", got)
	}
	b.wantCounters("1 1 1")
}

func TestFence(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	want := b.mustLockWithFence(r, "t")
	b.stores[0].Delete(cell.FenceKey("k"))
	b.rounds = nil
	if got, err := r.Fence(t.Context(), "k"); got != want || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	b.wantRounds("read")
	b.setFault(requestLost, 1, 2)
	if _, err := r.Fence(t.Context(), "k"); !errors.As(err, new(*NoQuorum)) {
		t.Errorf("%v", err)
	}
}

// TestFenceLimit checks that the memory for fences is limited.
func TestFenceLimit(t *testing.T) {
	f := fences{byKey: map[string]int64{}}
	for i := range 2 * maxFences {
		f.note(strconv.Itoa(i), 1)
	}
	f.note(strings.Repeat("k", maxFenceKeyBytes+1), 1)
	if len(f.byKey) > maxFences || f.highestFence(strings.Repeat("k", maxFenceKeyBytes+1)) != 0 {
		t.Errorf("%d keys", len(f.byKey))
	}
	f.note("k", 7)
	f.note("k", 5)
	if f.highestFence("k") != 7 {
		t.Errorf("%d", f.highestFence("k"))
	}
}
