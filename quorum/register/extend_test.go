package register

import (
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// extendCase is a state of the masters in which a proxy extends the lock of k.
type extendCase struct {
	name         string
	prepare      func(*fakeMasters)
	callingProxy string // "owner": the proxy that granted the lock; or "another"
	want         string
	rounds       string
}

// extendCases returns the cases of TestExtend.
func extendCases() []extendCase {
	return []extendCase{
		{"all well", func(*fakeMasters) {}, "owner", "granted", "extend"},
		{"through another proxy", func(*fakeMasters) {}, "another", "granted", "prepare accept"},
		{"two are away", func(b *fakeMasters) { b.setFault(requestFailed, 3, 4) }, "owner", "granted", "extend"},
		{"two lose the answer", func(b *fakeMasters) { b.setFault(replyLost, 3, 4) }, "owner", "granted", "extend"},
		{"three are away", func(b *fakeMasters) { b.setFault(requestFailed, 2, 3, 4) }, "owner", "no quorum", "extend"},
		{"on three, one of which is away", func(b *fakeMasters) {
			b.stores[3].Delete("k")
			b.stores[4].Delete("k")
			b.setFault(requestFailed, 0)
		}, "owner", "no quorum", "extend " + everyTry("prepare")},
		{"on two", func(b *fakeMasters) {
			for _, s := range b.stores[2:] {
				s.Delete("k")
			}
		}, "another", "not held", "prepare"},
		{"over, as the owner's proxy learns", func(b *fakeMasters) {
			for _, s := range b.stores {
				s.Delete("k")
			}
		}, "owner", "not held", "extend prepare"},
		{"expired, and taken by another", func(b *fakeMasters) {
			b.advance(11 * time.Second)
			b.mustLock(b.proxy(),
				"you")
		}, "another", "not held", "prepare"},
		{"expired, and taken by another with the same token", func(b *fakeMasters) {
			b.advance(11 * time.Second)
			b.mustLock(b.proxy(), "me")
		}, "owner", "granted", "extend prepare accept"},
		{"replaced", func(b *fakeMasters) { _, err := b.proxy().Update(b.Context(), putChange("you")); b.noError(err) },
			"another", "not held", "prepare"},
		{"replaced by the same token", func(b *fakeMasters) {
			_, err := b.proxy().Update(b.Context(), putChange("me"))
			b.noError(err)
		}, "owner", "granted", "extend prepare prepare accept"},
		{"removed", func(b *fakeMasters) { b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil)) }, "another",
			"not held", "prepare"},
		{"blocking copies say neither", func(b *fakeMasters) {
			for _, s := range b.stores[:3] {
				c := s.Get("k").Cell
				s.Put("k", cell.Cell{Form: cell.Blocking, Attempt: c.Attempt}, time.Second)
			}
		}, "another", "no quorum", everyTry("prepare")},
		// Masters 0 to 2 chose "me" in round 1. The value of round 2 may never be chosen.
		{"a newer value on two that had it", func(b *fakeMasters) {
			b.putAcceptedCell("me", 1, 2)
			b.putAcceptedCell("you", 2, 0, 1)
			b.stores[3].Delete("k")
			b.stores[4].Delete("k")
		},
			"another", "not held", "prepare prepare accept"},
		{"a newer value on two that had it, others away", func(b *fakeMasters) {
			b.putAcceptedCell("me", 1, 2)
			b.putAcceptedCell("you", 2, 0, 1)
			b.stores[3].Delete("k")
			b.setFault(requestFailed, 2, 4)
		}, "another", "no quorum", everyTry("prepare")},
		{"an older value on one, all agree otherwise", func(b *fakeMasters) {
			b.putAcceptedCell("me", 1, 0)
			b.putAcceptedCell("you",
				2, 1, 2, 3)
			b.stores[4].Delete("k")
		},
			"another", "not held", "prepare"},
		{"leftovers of two attempts, which ballots changed", func(b *fakeMasters) {
			b.putAcceptedCell("me", 1, 0)
			b.putAcceptedCell("you", 2, 1)
			for _, s := range b.stores[2:4] {
				c := b.stores[1].Get("k").Cell
				c.Attempt = attemptOf("b")
				s.Put("k", c, time.Minute)
			}
			b.stores[4].Delete("k")
		}, "another", "not held", "prepare"},
		{"too late", func(b *fakeMasters) { b.roundTime = Limit + 1 }, "owner", "late", "extend"},
	}
}

func TestExtend(t *testing.T) {
	for _, test := range extendCases() {
		b := newFakeMasters(t, 5)
		r := b.proxy()
		b.mustLock(r, "me")
		test.prepare(b)
		if test.callingProxy == "another" {
			r = b.proxy()
		}
		b.rounds = nil
		got, err := r.Extend(t.Context(), "k", "me", time.Minute)
		if outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		want := time.Minute - 600*time.Millisecond - 2*time.Millisecond
		if err == nil && (got.Validity > want || got.Validity < want-100*time.Millisecond) {
			t.Errorf("%s: granted for %v, want %v", test.name, got.Validity, want)
		}
		if t.Failed() {
			t.Log(test.name)
		}
		b.wantRounds(test.rounds)
	}
}

// TestExtendTogether checks that a common round extends a lock if, and only if, the round of Extend
// does, and that a lock next to it does not suffer.
func TestExtendTogether(t *testing.T) {
	for _, test := range extendCases() {
		b := newFakeMasters(t, 5)
		r := b.proxy()
		b.mustLock(r, "me")
		other := takeOptions("me")
		other.TTL = time.Hour
		_, err := r.Lock(t.Context(), []string{"j"}, other)
		b.noError(err)
		test.prepare(b)
		if test.callingProxy == "another" {
			r = b.proxy()
		}
		b.rounds = nil
		leases := r.ExtendTogether(t.Context(), []Extension{{"k", "me", time.Minute}, {"j", "me", 2 * time.Hour}})
		isOwner, failed := test.callingProxy == "owner", test.rounds == "extend" && test.want != "granted"
		for i, want := range []bool{isOwner && test.rounds == "extend" && !failed, isOwner && !failed} {
			if got := !leases[i].LeaseStart.IsZero(); got != want {
				t.Errorf("%s: lock %d is extended: %v, want %v", test.name, i, got, want)
			}
		}
		if want := map[bool]string{true: "extends"}[isOwner]; want == "" && len(b.rounds) > 0 || want != "" && b.rounds[0] != want {
			t.Errorf("%s: rounds %v", test.name, b.rounds)
		}
		want := time.Minute - 600*time.Millisecond - 2*time.Millisecond
		if got := leases[0].Validity; got > want || got != 0 && got < want-100*time.Millisecond {
			t.Errorf("%s: granted for %v, want %v", test.name, got, want)
		}
	}
}

// TestExtendTogetherRepairs checks that a master that lacks one of several locks gets this one
// back, whether its reply comes in time or late.
func TestExtendTogetherRepairs(t *testing.T) {
	for _, injected := range []fault{noFault, replyLate} {
		b := newFakeMasters(t, 3)
		r := b.proxy()
		b.mustLock(r, "me")
		_, err := r.Lock(t.Context(), []string{"j"}, takeOptions("me"))
		b.noError(err)
		b.stores[2].Delete("j")
		b.setFault(injected, 2)
		for i, lease := range r.ExtendTogether(t.Context(), []Extension{{"k", "me", time.Minute}, {"j", "me", time.Minute}}) {
			if lease.Validity < 59*time.Second {
				t.Errorf("lock %d: %+v", i, lease)
			}
		}
		b.faultOf = nil
		b.deliverPending()
		b.advance(5 * time.Second)
		for m, s := range b.stores {
			if f := s.Get("j"); f.Value.Text != "me" || f.TimeLeft < 54*time.Second {
				t.Errorf("master %d holds %q for %v", m, f.Value.Text, f.TimeLeft)
			}
		}
	}
}

// TestExtendWithDifferentValues checks that a ballot decides first if masters hold different values
// of one lock.
func TestExtendWithDifferentValues(t *testing.T) {
	for _, test := range []struct {
		token, want, wantCells string
	}{
		{"me", "not held", "you* you* you* . ."},
		{"you", "granted", "you* you* you* . ."},
	} {
		b := newFakeMasters(t, 5)
		b.setFault(requestFailed, 3, 4)
		b.mustLock(b.proxy(), "me")
		b.setFaultOn("accept", requestLost, 1, 2, 3, 4)
		_, err := b.proxy().Update(t.Context(), putChange("you"))
		if outcome(err) == "granted" {
			t.Fatal("the change was made by one master of five")
		}
		b.setFault(requestFailed, 3, 4)
		b.wantCells("you* me* me* . .")
		if _, err := b.proxy().Extend(t.Context(), "k", test.token, time.Minute); outcome(err) != test.want {
			t.Errorf("EXTEND %s: %v, want %s", test.token, err, test.want)
		}
		b.wantCells(test.wantCells)
	}
}

// TestExtendByShorterTTL checks that an EXTEND shortens nothing, and reports longer leases.
func TestExtendByShorterTTL(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.mustLock(r, "me")
	got, err := r.Extend(t.Context(), "k", "me", time.Second)
	b.noError(err)
	if !got.HadLongerLease || b.stores[0].Get("k").TimeLeft != 10*time.Second {
		t.Errorf("%+v, and %v left", got, b.stores[0].Get("k").TimeLeft)
	}
	got, err = r.Extend(t.Context(), "k", "me", time.Minute)
	b.noError(err)
	if got.HadLongerLease || b.stores[0].Get("k").TimeLeft != time.Minute {
		t.Errorf("%+v, and %v left", got, b.stores[0].Get("k").TimeLeft)
	}
	_, err = r.Extend(t.Context(), "k", "me", cell.NoExpiry)
	b.noError(err)
	got, err = r.Extend(t.Context(), "k", "me", time.Second)
	b.noError(err)
	if !got.HadLongerLease || b.stores[0].Get("k").TimeLeft != cell.NoExpiry {
		t.Errorf("%+v, and %v left", got, b.stores[0].Get("k").TimeLeft)
	}
	if _, err := r.Extend(t.Context(), "k", "me", time.Millisecond); outcome(err) != "too short" {
		t.Error(err)
	}
}

// TestExtendedGrant checks that an extension also extends the grant.
func TestExtendedGrant(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.mustLock(r, "me")
	_, err := r.Extend(t.Context(), "k", "me", time.Minute)
	b.noError(err)
	if ends := r.grants.byKey["k"].expiresAt; !ends.Equal(b.now.Add(time.Minute)) {
		t.Errorf("it ends %v", ends)
	}
	_, err = r.Extend(t.Context(), "k", "me", cell.NoExpiry)
	b.noError(err)
	if ends := r.grants.byKey["k"].expiresAt; !ends.IsZero() {
		t.Errorf("it ends %v", ends)
	}
}

// TestExtendDuringABallot checks that a granted extension is not lost if it comes between the
// promises and the accept of a ballot. The accept uses the expiry that the promises reported. A
// master that promised extends nothing, so the extending ballot comes before or after the other
// ballot.
func TestExtendDuringABallot(t *testing.T) {
	for name, change := range map[string]func(Snapshot) (Decision, error){
		"others come into the cell": func(l Snapshot) (Decision, error) {
			return Decision{Action: Put, Value: "me and others", TTL: l.LongestTimeLeft, Shared: true}, nil
		},
		"the value is kept": keepUnchanged,
		"a shorter lease": func(l Snapshot) (Decision, error) {
			return Decision{Action: Put, Value: "me", TTL: time.Minute, KeepTTL: l.LongestTimeLeft > time.Minute}, nil
		},
	} {
		b := newFakeMasters(t, 3)
		owner, other := b.proxy(), b.proxy()
		b.mustLock(owner, "me")
		extended := false
		b.faultOf = func(master int, op cell.Op) fault {
			switch _, isExtend := op.(cell.Extend); {
			case isExtend && master == 2:
				return requestFailed
			case !extended && master == 0 && !isExtend:
				return replyLate
			}
			return noFault
		}
		_, err := other.Update(t.Context(), Change{Key: "k", alwaysAccept: true, Run: func(l Snapshot) (Decision, error) {
			if !extended {
				extended = true
				_, err := owner.Extend(t.Context(), "k", "me", time.Hour)
				b.noError(err)
			}
			return change(l)
		}})
		b.noError(err)
		b.faultOf = nil
		b.deliverPending()
		for m, s := range b.stores {
			if f := s.Get("k"); f.TimeLeft <= 59*time.Minute {
				t.Errorf("%s: master %d holds %q for %v", name, m, f.Value.Text, f.TimeLeft)
			}
		}
	}
}

// TestExtendAfterABallot extends a lock of another proxy. The first EXTEND takes a ballot.
// Afterwards no ballot is promised, and this proxy knows the lock, so the second EXTEND takes one
// round trip.
func TestExtendAfterABallot(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "you")
	_, err := b.proxy().Update(t.Context(), putChange("me"))
	b.noError(err)
	r := b.proxy()
	for _, rounds := range []string{"prepare prepare accept", "extend"} {
		b.rounds = nil
		_, err = r.Extend(t.Context(), "k", "me", time.Hour)
		b.noError(err)
		b.wantRounds(rounds)
	}
}

// TestExpiryOfKeptValue checks that a ballot that keeps a value does not shorten a granted
// EXTEND. Four of five masters hold the lock. Only master 3 accepts a first ballot that keeps the
// value. Then masters 0 to 2 grant an EXTEND, and a second ballot keeps the value.
func TestExpiryOfKeptValue(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.faultOf = func(master int, _ cell.Op) fault {
		return map[bool]fault{true: requestFailed, false: noFault}[master == 4]
	}
	owner := b.proxy()
	b.mustLock(owner, "me")
	b.faultOf = func(master int, op cell.Op) fault {
		_, accepts := op.(cell.Accept)
		return map[bool]fault{true: requestFailed, false: noFault}[master == 4 || accepts && master != 3]
	}
	b.now = b.now.Add(time.Second)
	_, _ = b.proxy().Update(t.Context(), Change{Key: "k", alwaysAccept: true, Run: keepUnchanged})
	b.faultOf = func(master int, _ cell.Op) fault {
		return map[bool]fault{true: requestFailed, false: noFault}[master > 2]
	}
	_, err := owner.Extend(t.Context(), "k", "me", time.Hour)
	b.noError(err)
	b.faultOf = func(master int, _ cell.Op) fault {
		return map[bool]fault{true: requestFailed, false: noFault}[master == 1 || master == 4]
	}
	_, err = b.proxy().Update(t.Context(), Change{Key: "k", alwaysAccept: true, Run: keepUnchanged})
	b.noError(err)
	for m, s := range b.stores[:4] {
		if f := s.Get("k"); f.TimeLeft <= 59*time.Minute {
			t.Errorf("master %d holds it for %v", m, f.TimeLeft)
		}
	}
}

// TestExtendOfPromisedLock checks that an EXTEND succeeds although two of five masters promised a
// ballot and extend nothing, and a third master lacks the lock.
func TestExtendOfPromisedLock(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.faultOf = func(master int, _ cell.Op) fault {
		return map[bool]fault{true: requestFailed, false: noFault}[master == 2]
	}
	owner := b.proxy()
	b.mustLock(owner, "me")
	b.faultOf = func(master int, _ cell.Op) fault {
		return map[bool]fault{true: requestFailed, false: noFault}[master > 1]
	}
	_, _ = b.proxy().Update(t.Context(), putChange("you"))
	b.faultOf = nil
	if _, err := owner.Extend(t.Context(), "k", "me", time.Hour); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestExtendByBallotAndShorterTTL checks that an extension by ballot shortens nothing and reports
// the longer lease, whichever proxy stored the value.
func TestExtendByBallotAndShorterTTL(t *testing.T) {
	for _, proxyOf := range []string{"the proxy that replaced it", "another"} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "you")
		r := b.proxy()
		_, err := r.Update(t.Context(), Change{Key: "k", Run: func(Snapshot) (Decision, error) {
			return Decision{Action: Put, Value: "me", TTL: cell.NoExpiry}, nil
		}})
		b.noError(err)
		if proxyOf == "another" {
			r = b.proxy()
		}
		got, err := r.Extend(t.Context(), "k", "me", time.Hour)
		b.noError(err)
		if left := b.stores[0].Get("k").TimeLeft; !got.HadLongerLease || left != cell.NoExpiry {
			t.Errorf("through %s: %+v, and %v left", proxyOf, got, left)
		}
	}
}

// TestForgetVersion checks that ForgetVersion keeps an extended version, and forgets a replaced
// version.
func TestForgetVersion(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	got := b.mustLock(r, "me")
	if !r.ForgetVersion("k", "another") || !r.ForgetVersion("k", got.Version) {
		t.Error("it was not extended")
	}
	b.rounds = nil
	_, err := r.Extend(t.Context(), "k", "me", time.Minute)
	b.noError(err)
	// the removal of the old version may be pending, so EXTEND makes a new version
	b.wantRounds("prepare accept")
	_, err = r.Extend(t.Context(), "k", "me", time.Hour)
	b.noError(err)
	extended := r.grants.find("k", hasToken("me")).currentVersion()
	if extended == got.Version || r.ForgetVersion("k", extended) || !r.ForgetVersion("k", got.Version) {
		t.Error("it was extended, under a version of its own")
	}
}

// TestExtendByBallotLastsOnEachMaster extends a lock by a ballot when some master holds it for a
// little longer than the new TTL. The prepare takes long, so the remaining time there is known with
// less precision than that. Each master that accepts holds the lock for the whole new TTL.
func TestExtendByBallotLastsOnEachMaster(t *testing.T) {
	for _, longerBy := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, Limit, 2 * Limit} {
		b := newFakeMasters(t, 3)
		owner := b.proxy()
		b.mustLock(owner, "me")
		const ttl = 20 * time.Second
		b.setFault(requestFailed, 2)
		_, err := owner.Extend(t.Context(), "k", "me", ttl+longerBy)
		b.noError(err)
		b.setFault(requestFailed, 1)
		b.roundTime = 250 * time.Millisecond
		start := b.now
		_, err = b.proxy().Extend(t.Context(), "k", "me", ttl)
		b.noError(err)
		for _, m := range []int{0, 2} {
			if end := b.now.Add(b.stores[m].Get("k").TimeLeft); end.Before(start.Add(ttl)) {
				t.Errorf("master 0 holds it for %v longer: master %d holds it for %v, want %v", longerBy, m, end.Sub(start), ttl)
			}
		}
	}
}

// TestValidityOfRepeatedBallots lets the accept of an EXTEND reach one master only, and later ballots
// of the same command find it. The client relies on the lock no longer than the masters hold it whose
// accepts counted.
func TestValidityOfRepeatedBallots(t *testing.T) {
	const slow = 270 * time.Millisecond
	for _, test := range []struct {
		name string
		// away is the master that each ballot does not reach, and accepting the only master that its
		// accept reaches, or -1.
		away, accepting []int
		roundTimes      []time.Duration
		accepted        []int
	}{
		{"a slow ballot finds it", []int{2, 2}, []int{0, -1}, []time.Duration{0, slow}, []int{0, 1}},
		{"a slow one finds it, and a fast one that", []int{2, 2, 0}, []int{0, 1, -1}, []time.Duration{0, slow, 0}, []int{1, 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFakeMasters(t, 3)
			b.mustLock(b.proxy(), "me")
			ballot := 0
			b.faultOf = func(m int, op cell.Op) fault {
				if m == test.away[ballot] || kindOf(op) == "accept" && test.accepting[ballot] >= 0 && m != test.accepting[ballot] {
					return requestLost
				}
				return noFault
			}
			b.onPause = func() { ballot++; b.roundTime = test.roundTimes[ballot] }
			got, err := b.proxy().Extend(t.Context(), "k", "me", 20*time.Second)
			b.noError(err)
			if ballot != len(test.away)-1 {
				t.Errorf("it took %d ballots", ballot+1)
			}
			for _, m := range test.accepted {
				if left := b.stores[m].Get("k").TimeLeft; left < got.Validity {
					t.Errorf("master %d holds it for %v, the client relies on %v", m, left, got.Validity)
				}
			}
		})
	}
}

// TestValidityBesideLaterVersion lets the accept of an EXTEND reach one master only. Another proxy's
// slow EXTEND for less time keeps its lease under a version of its own, which another master holds for
// less, and the first EXTEND finds that version. Its client relies on the lock no longer than the
// masters hold it.
func TestValidityBesideLaterVersion(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	first, second := b.proxy(), b.proxy()
	b.faultOf = func(m int, op cell.Op) fault {
		if m == 2 || m == 1 && kindOf(op) == "accept" {
			return requestLost
		}
		return noFault
	}
	b.onPause = func() {
		b.onPause = nil
		b.setFault(requestLost, 2)
		b.roundTime = 280 * time.Millisecond
		_, err := second.Extend(t.Context(), "k", "me", 5*time.Second)
		b.noError(err)
		b.setFault(requestLost, 0)
		b.roundTime = 0
	}
	got, err := first.Extend(t.Context(), "k", "me", 20*time.Second)
	b.noError(err)
	for m, s := range b.stores[1:] {
		if left := s.Get("k").TimeLeft; left < got.Validity {
			t.Errorf("master %d holds it for %v, the client relies on %v", m+1, left, got.Validity)
		}
	}
}
