package register

import (
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func TestExtend(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*bench)
		through string // which proxy: the owner's, or another
		want    string
		rounds  string
	}{
		{"all well", func(*bench) {}, "owner", "granted", "extend"},
		{"through another proxy", func(*bench) {}, "another", "granted", "prepare accept"},
		{"two are away", func(b *bench) { b.at(refused, 3, 4) }, "owner", "granted", "extend"},
		{"two lose the answer", func(b *bench) { b.at(lost, 3, 4) }, "owner", "granted", "extend"},
		{"three are away", func(b *bench) { b.at(refused, 2, 3, 4) }, "owner", "no quorum", "extend"},
		{"on three, one of which is away", func(b *bench) { b.stores[3].Delete("k"); b.stores[4].Delete("k"); b.at(refused, 0) }, "owner", "no quorum", "extend prepare"},
		{"on two", func(b *bench) {
			for _, s := range b.stores[2:] {
				s.Delete("k")
			}
		}, "another", "not held", "prepare"},
		{"over, as the owner's proxy learns", func(b *bench) {
			for _, s := range b.stores {
				s.Delete("k")
			}
		}, "owner", "not held", "extend prepare"},
		{"over, and taken by another", func(b *bench) { b.pass(11 * time.Second); b.lock(b.proxy(), "you") }, "another", "not held", "prepare"},
		{"over, and taken by another with the same token", func(b *bench) { b.pass(11 * time.Second); b.lock(b.proxy(), "me") }, "owner", "granted", "extend prepare accept"},
		{"replaced", func(b *bench) { _, err := b.proxy().Update(b.Context(), put("you")); b.sure(err) }, "another", "not held", "prepare"},
		{"replaced by the same token", func(b *bench) { _, err := b.proxy().Update(b.Context(), put("me")); b.sure(err) }, "owner", "granted", "extend prepare prepare accept"},
		{"removed", func(b *bench) { b.sure(b.proxy().Unlock(b.Context(), "k", "me", nil)) }, "another", "not held", "prepare"},
		{"blocking copies say neither", func(b *bench) {
			for _, s := range b.stores[:3] {
				c := s.Look("k").Cell
				s.Put("k", cell.Cell{Form: cell.Blocking, Attempt: c.Attempt}, time.Second)
			}
		}, "another", "no quorum", "prepare"},
		// Its token (1) was chosen by 1 to 3. What a ballot put on two of these may never be
		// chosen.
		{"a newer value on two that had it", func(b *bench) {
			b.accepted("me", 1, 2)
			b.accepted("you", 2, 0, 1)
			b.stores[3].Delete("k")
			b.stores[4].Delete("k")
		},
			"another", "not held", "prepare prepare accept"},
		{"a newer value on two that had it, others away", func(b *bench) {
			b.accepted("me", 1, 2)
			b.accepted("you", 2, 0, 1)
			b.stores[3].Delete("k")
			b.at(refused, 2, 4)
		}, "another", "no quorum", "prepare"},
		{"an older value on one, all agree otherwise", func(b *bench) { b.accepted("me", 1, 0); b.accepted("you", 2, 1, 2, 3); b.stores[4].Delete("k") },
			"another", "not held", "prepare"},
		{"leftovers of two attempts, which ballots changed", func(b *bench) {
			b.accepted("me", 1, 0)
			b.accepted("you", 2, 1)
			for _, s := range b.stores[2:4] {
				c := b.stores[1].Look("k").Cell
				c.Attempt = attemptOf("b")
				s.Put("k", c, time.Minute)
			}
			b.stores[4].Delete("k")
		}, "another", "not held", "prepare"},
		{"too late", func(b *bench) { b.takes = Limit + 1 }, "owner", "late", "extend"},
	} {
		b := newBench(t, 5)
		r := b.proxy()
		b.lock(r, "me")
		test.prepare(b)
		if test.through == "another" {
			r = b.proxy()
		}
		b.rounds = nil
		got, err := r.Extend(t.Context(), "k", "me", time.Minute)
		if outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if want := time.Minute - 600*time.Millisecond - 2*time.Millisecond; err == nil && (got.Validity > want || got.Validity < want-100*time.Millisecond) {
			t.Errorf("%s: granted for %v, want %v", test.name, got.Validity, want)
		}
		if t.Failed() {
			t.Log(test.name)
		}
		b.wantRounds(test.rounds)
	}
}

// Where half of the masters hold the token and half of them another value of the same
// lock, a ballot decides first.
func TestExtendMixed(t *testing.T) {
	for _, test := range []struct {
		token, want, holds string
	}{
		{"me", "not held", "you* you* you* . ."},
		{"you", "granted", "you* you* you* . ."},
	} {
		b := newBench(t, 5)
		b.at(refused, 3, 4)
		b.lock(b.proxy(), "me")
		b.of("accept", unsent, 1, 2, 3, 4)
		_, err := b.proxy().Update(t.Context(), put("you"))
		if outcome(err) == "granted" {
			t.Fatal("the change was made by one master of five")
		}
		b.at(refused, 3, 4)
		b.wantHolds("you* me* me* . .")
		if _, err := b.proxy().Extend(t.Context(), "k", test.token, time.Minute); outcome(err) != test.want {
			t.Errorf("EXTEND %s: %v, want %s", test.token, err, test.want)
		}
		b.wantHolds(test.holds)
	}
}

// Nothing is shortened, and a request for less is told that some have more.
func TestExtendNeverShortens(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	b.lock(r, "me")
	got, err := r.Extend(t.Context(), "k", "me", time.Second)
	b.sure(err)
	if !got.Longer || b.stores[0].Look("k").Left != 10*time.Second {
		t.Errorf("%+v, and %v left", got, b.stores[0].Look("k").Left)
	}
	got, err = r.Extend(t.Context(), "k", "me", time.Minute)
	b.sure(err)
	if got.Longer || b.stores[0].Look("k").Left != time.Minute {
		t.Errorf("%+v, and %v left", got, b.stores[0].Look("k").Left)
	}
	_, err = r.Extend(t.Context(), "k", "me", cell.Endless)
	b.sure(err)
	got, err = r.Extend(t.Context(), "k", "me", time.Second)
	b.sure(err)
	if !got.Longer || b.stores[0].Look("k").Left != cell.Endless {
		t.Errorf("%+v, and %v left", got, b.stores[0].Look("k").Left)
	}
	if _, err := r.Extend(t.Context(), "k", "me", time.Millisecond); outcome(err) != "too short" {
		t.Error(err)
	}
}

// A lock that was extended is remembered for longer.
func TestExtendedGrant(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	b.lock(r, "me")
	_, err := r.Extend(t.Context(), "k", "me", time.Minute)
	b.sure(err)
	if ends := r.grants.byKey["k"].ends; !ends.Equal(b.now.Add(time.Minute)) {
		t.Errorf("it ends %v", ends)
	}
	_, err = r.Extend(t.Context(), "k", "me", cell.Endless)
	b.sure(err)
	if ends := r.grants.byKey["k"].ends; !ends.IsZero() {
		t.Errorf("it ends %v", ends)
	}
}

// TestExtendBesideABallot: a lock is extended between the promises of a ballot and what that makes
// of the end that it was told. What was granted is not lost by that: a master that promised extends
// nothing, so the ballot that extends comes after the other or before it.
func TestExtendBesideABallot(t *testing.T) {
	for name, change := range map[string]func(Look) (Decision, error){
		"others come into the cell": func(l Look) (Decision, error) {
			return Decision{Do: Put, Value: "me and others", TTL: l.Longest, Shared: true}, nil
		},
		"the value is kept": leave,
		"a shorter lease": func(l Look) (Decision, error) {
			return Decision{Do: Put, Value: "me", TTL: time.Minute, KeepTTL: l.Longest > time.Minute}, nil
		},
	} {
		b := newBench(t, 3)
		owner, other := b.proxy(), b.proxy()
		b.lock(owner, "me")
		extended := false
		b.fate = func(master int, op cell.Op) fate {
			switch _, extends := op.(cell.Extend); {
			case extends && master == 2:
				return refused
			case !extended && master == 0 && !extends:
				return late
			}
			return done
		}
		_, err := other.Update(t.Context(), Change{Key: "k", settle: true, Run: func(l Look) (Decision, error) {
			if !extended {
				extended = true
				_, err := owner.Extend(t.Context(), "k", "me", time.Hour)
				b.sure(err)
			}
			return change(l)
		}})
		b.sure(err)
		b.fate = nil
		b.deliver()
		for m, s := range b.stores {
			if f := s.Look("k"); f.Left <= 59*time.Minute {
				t.Errorf("%s: master %d holds %q for %v", name, m, f.Value.Text, f.Left)
			}
		}
	}
}

// A lock that another proxy granted is extended by ballot; one that has not met the last ballot
// needs two tries. After that no ballot is promised, this proxy knows the lock, and extends it in
// one round trip.
func TestExtendAfterABallot(t *testing.T) {
	b := newBench(t, 3)
	b.lock(b.proxy(), "you")
	_, err := b.proxy().Update(t.Context(), put("me"))
	b.sure(err)
	r := b.proxy()
	for _, rounds := range []string{"prepare prepare accept", "extend"} {
		b.rounds = nil
		_, err = r.Extend(t.Context(), "k", "me", time.Hour)
		b.sure(err)
		b.wantRounds(rounds)
	}
}

// TestKeptValueIsNotShortened: of five masters a lock is on four. A fifth is given it, and what its
// ballot has accepted reaches D alone; then A, B and C grant an EXTEND, and another ballot keeps
// the value.
func TestKeptValueIsNotShortened(t *testing.T) {
	b := newBench(t, 5)
	b.fate = func(master int, _ cell.Op) fate { return map[bool]fate{true: refused, false: done}[master == 4] }
	owner := b.proxy()
	b.lock(owner, "me")
	b.fate = func(master int, op cell.Op) fate {
		_, accepts := op.(cell.Accept)
		return map[bool]fate{true: refused, false: done}[master == 4 || accepts && master != 3]
	}
	b.now = b.now.Add(time.Second)
	_, _ = b.proxy().Update(t.Context(), Change{Key: "k", settle: true, Run: leave})
	b.fate = func(master int, _ cell.Op) fate { return map[bool]fate{true: refused, false: done}[master > 2] }
	_, err := owner.Extend(t.Context(), "k", "me", time.Hour)
	b.sure(err)
	b.fate = func(master int, _ cell.Op) fate {
		return map[bool]fate{true: refused, false: done}[master == 1 || master == 4]
	}
	_, err = b.proxy().Update(t.Context(), Change{Key: "k", settle: true, Run: leave})
	b.sure(err)
	for m, s := range b.stores[:4] {
		if f := s.Look("k"); f.Left <= 59*time.Minute {
			t.Errorf("master %d holds it for %v", m, f.Left)
		}
	}
}

// TestPromisedIsHeld: two of five masters that promised a ballot extend nothing, and a third lacks
// the lock. That does not say that it is not held.
func TestPromisedIsHeld(t *testing.T) {
	b := newBench(t, 5)
	b.fate = func(master int, _ cell.Op) fate { return map[bool]fate{true: refused, false: done}[master == 2] }
	owner := b.proxy()
	b.lock(owner, "me")
	b.fate = func(master int, _ cell.Op) fate { return map[bool]fate{true: refused, false: done}[master > 1] }
	_, _ = b.proxy().Update(t.Context(), put("you"))
	b.fate = nil
	if _, err := owner.Extend(t.Context(), "k", "me", time.Hour); err != nil {
		t.Errorf("got %v", err)
	}
}

// By ballot, too, nothing is shortened, and who asks for less is told: where the proxy does not
// know what time a lock has that it put there itself by ballot, and where another put it there.
func TestExtendByBallotNeverShortens(t *testing.T) {
	for _, through := range []string{"the proxy that replaced it", "another"} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "you")
		r := b.proxy()
		_, err := r.Update(t.Context(), Change{Key: "k", Run: func(Look) (Decision, error) {
			return Decision{Do: Put, Value: "me", TTL: cell.Endless}, nil
		}})
		b.sure(err)
		if through == "another" {
			r = b.proxy()
		}
		got, err := r.Extend(t.Context(), "k", "me", time.Hour)
		b.sure(err)
		if left := b.stores[0].Look("k").Left; !got.Longer || left != cell.Endless {
			t.Errorf("through %s: %+v, and %v left", through, got, left)
		}
	}
}

// TestDisown: a version that one round extended is not nobody's. What replaced it is another one.
func TestDisown(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	got := b.lock(r, "me")
	if !r.Disown("k", "another") || !r.Disown("k", got.Version) {
		t.Error("it was not extended")
	}
	b.rounds = nil
	_, err := r.Extend(t.Context(), "k", "me", time.Minute)
	b.sure(err)
	b.wantRounds("prepare accept") // it may be owed its removal, so the version is a new one
	_, err = r.Extend(t.Context(), "k", "me", time.Hour)
	b.sure(err)
	if made := r.grants.find("k", of("me")).made(); made == got.Version || r.Disown("k", made) || !r.Disown("k", got.Version) {
		t.Error("it was extended, under a version of its own")
	}
}
