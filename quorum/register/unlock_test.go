package register

import (
	"context"
	"errors"
	"math/big"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func TestUnlock(t *testing.T) {
	for _, test := range []struct {
		name     string
		meantime func(*fakeMasters) // runs between LOCK and UNLOCK
		want     string
		holds    string
		rounds   string
	}{
		{"all well", func(*fakeMasters) {}, "granted", ". . . . .", "remove"},
		{"two are away", func(b *fakeMasters) { b.setFate(refused, 3, 4) }, "granted", ". . . me me", "remove"},
		{"two lose the answer", func(b *fakeMasters) { b.setFate(lost, 3, 4) }, "granted", ". . . . .", "remove"},
		{"three are away", func(b *fakeMasters) { b.setFate(refused, 2, 3, 4) }, "no quorum", ". . me me me", "remove"},
		{"three lose the answer", func(b *fakeMasters) { b.setFate(lost, 2, 3, 4) }, "no quorum", ". . . . .", "remove"},
		{"its lease has expired", func(b *fakeMasters) { b.advance(11 * time.Second) }, "not held", ". . . . .", "remove"},
		{"gone by an operator's hand from most", func(b *fakeMasters) {
			for _, s := range b.stores[:3] {
				s.Delete("k")
			}
		}, "no quorum", ". . . . .", "remove"},
		{"expired, and another took it with the same token", func(b *fakeMasters) {
			b.advance(11 * time.Second)
			b.lock(b.proxy(), "me")
		}, "granted", "-* -* -* -* -*", "remove prepare accept"},
		{"expired, and another took it with another token", func(b *fakeMasters) {
			b.advance(11 * time.Second)
			b.lock(b.proxy(), "you")
		}, "not held", "you you you you you", "remove prepare"},
		{"another replaced it", func(b *fakeMasters) {
			_, err := b.proxy().Update(b.Context(), put("you"))
			b.noError(err)
			b.rounds = nil
		}, "not held", "you* you* you* you* you*", "remove prepare"},
		{"another looked into replacing it", func(b *fakeMasters) {
			_, err := b.proxy().Update(b.Context(), look(nil))
			b.noError(err)
			b.rounds = nil
		}, "granted", "-* -* -* -* -*", "remove prepare prepare accept"},
		{"a ballot was promised on two only", func(b *fakeMasters) {
			b.setFateOf("prepare", unsent, 2, 3, 4)
			_, _ = b.proxy().Update(b.Context(), look(nil))
			b.rounds, b.fate = nil, nil
		}, "granted", "me* me* . . .", "remove"},
	} {
		b := newFakeMasters(t, 5)
		r := b.proxy()
		b.lock(r, "me")
		test.meantime(b)
		if err := r.Unlock(t.Context(), "k", "me", nil); outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if got := b.holds("k"); got != test.holds {
			t.Errorf("%s: the masters hold %s, want %s", test.name, got, test.holds)
		}
		b.wantRounds(test.rounds)
	}
}

func look(at *Look) Change {
	return Change{Key: "k", Run: func(l Look) (Decision, error) {
		if at != nil {
			*at = l
		}
		return Decision{}, nil
	}}
}

// TestReleaseIsOwed checks that masters that are away receive the release later.
func TestReleaseIsOwed(t *testing.T) {
	b := newFakeMasters(t, 5)
	r := b.proxy()
	b.lock(r, "me")
	b.setFate(refused, 3, 4)
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	b.deliverOwed()
	b.wantHolds(". . . me me")
	b.lock(b.proxy(), "you") // on the three masters that are well
	b.fate = nil
	b.deliverOwed()
	b.wantHolds("you you you . .")
}

// TestUnlockThroughAnotherProxy checks that another proxy releases by ballot, and frees the key at
// once.
func TestUnlockThroughAnotherProxy(t *testing.T) {
	b := newFakeMasters(t, 3)
	owner, other := b.proxy(), b.proxy()
	b.lock(owner, "me")
	if err := other.Unlock(t.Context(), "k", "you", nil); outcome(err) != "not held" {
		t.Error(err)
	}
	b.wantRounds("prepare")
	b.wantHolds("me me me") // an UNLOCK with another token leaves no trace
	b.noError(other.Unlock(t.Context(), "k", "me", nil))
	b.wantRounds("prepare accept")
	b.wantHolds("-* -* -*")
	if err := other.Unlock(t.Context(), "k", "me", nil); outcome(err) != "not held" {
		t.Error(err)
	}
	if err := owner.Unlock(t.Context(), "k", "me", nil); outcome(err) != "not held" {
		t.Error(err)
	}
	b.advance(removalTTL)
	b.wantHolds(". . .")
}

func TestUnlockForeign(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.foreign("me", 0, 1, 2)
	if err := b.proxy().Unlock(t.Context(), "k", "me", nil); outcome(err) != "foreign" {
		t.Error(err)
	}
	b.wantHolds("[me] [me] [me]")
}

func TestUnlockCanceled(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.lock(r, "me")
	ctx, leave := context.WithCancelCause(t.Context())
	left := errors.New("left")
	leave(left)
	if err := r.Unlock(ctx, "k", "me", nil); !errors.Is(err, left) {
		t.Error(err)
	}
	b.wantHolds(". . .")
}

// TestEvaluateRelease evaluates the replies of five masters. d: the master deleted its cell. A dot:
// it held nothing. ?: no reply. o: it holds another attempt. u: the same without a vote. f: not
// sent. r: it holds ours in register form. b: it held a blocking copy of ours, which is gone now.
// The proxy knows about the lock: + the master took it, - it did not, ~ it still may.
func TestEvaluateRelease(t *testing.T) {
	ours, others := attemptOf("a"), attemptOf("b")
	found := func(form cell.Form, attempt cell.Attempt) cell.Answer {
		return cell.Answer{Found: []cell.Found{{Cell: cell.Cell{Form: form, Attempt: attempt}}}}
	}
	said := map[rune]Reply{
		'd': {State: Counted, Answer: cell.Answer{Did: true}},
		'.': {State: Counted, Answer: cell.Answer{Found: make([]cell.Found, 1)}},
		'?': {State: Unknown},
		'o': {State: Counted, Answer: found(cell.Plain, others)},
		'f': {State: Failed},
		'u': {State: Uncounted, Answer: found(cell.Plain, others)},
		'r': {State: Counted, Answer: found(cell.Register, ours)},
		'b': {State: Counted, Answer: found(cell.Blocking, ours)},
	}
	names := map[releaseVerdict]string{
		releaseUnknown: "unknown", releaseDone: "done", releaseNone: "none", releaseOther: "other",
		releaseByBallot: "by ballot",
	}
	for _, test := range []struct{ knows, said, want string }{
		{"+++++", "ddddd", "done"},
		{"+++++", "ddd??", "done"},
		{"+++++", "dd???", "unknown"},
		{"+++++", "?????", "unknown"},
		{"+++--", "ddd..", "done"},
		{"+++--", "dd?..", "done"},    // only this release can have deleted the third
		{"+++--", "d??..", "done"},    // the same for these two
		{"+++--", "???..", "unknown"}, // the release may have deleted none
		{"+++--", "???oo", "unknown"},
		{"+++~~", "dd?..", "unknown"}, // the lock may still arrive at the last two
		{"+++~~", "ddd..", "done"},
		{"+++~~", "dd?d.", "unknown"}, // the deleted cell may be a copy; the lock itself may still arrive
		{"+++-~", "dd?.d", "done"},    // only this release can have deleted the third; the last is no majority
		{"+++++", "dd...", "unknown"}, // masters may have forgotten the lock
		{"+++++", ".....", "none"},
		{"+++++", "ooooo", "other"},
		{"+----", "oooff", "other"}, // the release deleted nothing, and the last two are too few
		{"+++--", "ooouf", "other"},
		{"+++++", "ooo?f", "unknown"}, // the release may have deleted one
		{"+++++", "oo.ff", "unknown"},
		{"+++++", "ddooo", "unknown"},
		{"+++++", "??...", "unknown"},
		{"+++++", "???..", "unknown"},
		{"+++++", "ddr..", "by ballot"},
		{"+++++", "ddd.r", "done"},
		{"+++++", "rrrrr", "by ballot"},
		{"+++++", "bbddd", "done"},
	} {
		b := newFakeMasters(t, 5)
		g := &grant{attempt: ours, holders: make([]bool, 5), pending: make([]bool, 5)}
		var replies []Reply
		for i := range test.said {
			g.holders[i], g.pending[i] = test.knows[i] == '+', test.knows[i] == '~'
			replies = append(replies, said[rune(test.said[i])])
		}
		if got := names[b.proxy().evaluateRelease(g, replies, time.Now())]; got != test.want {
			t.Errorf("%s: %s: %s, want %s", test.knows, test.said, got, test.want)
		}
	}
}

// TestReleaseBeforeTheLockArrives checks that a SET that arrives after the release has no effect.
func TestReleaseBeforeTheLockArrives(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.setFateOf("take", slow, 2)
	b.lock(r, "me")
	b.fate = nil
	b.setFateOf("remove", lost, 1)
	if err := r.Unlock(t.Context(), "k", "me", nil); outcome(err) == "granted" {
		t.Error("released, and it may stand again")
	}
	b.fate = nil
	b.deliverPending()
	b.deliverOwed()
}

// TestReleaseWhileATakeMayArrive checks that a ballot releases the lock if a SET may still arrive
// because its connection broke: a deleted cell looks like one that the SET has yet to reach.
func TestReleaseWhileATakeMayArrive(t *testing.T) {
	b := newFakeMasters(t, 3)
	r, other := b.proxy(), b.proxy()
	b.setFateOf("take", broken, 2)
	b.lock(r, "me")
	b.fate = func(master int, op cell.Op) fate {
		switch kind := kindOf(op); {
		case master == 1 && (kind == "remove" || kind == "accept"):
			return unsent
		default:
			return done
		}
	}
	if err := r.Unlock(t.Context(), "k", "me", nil); !errors.As(err, new(*NoQuorum)) {
		t.Error(err)
	}
	b.setFate(unsent, 1)
	arrives := func() {
		b.fate = nil
		b.deliverPending()
	}
	b.pausing = arrives // while the read is retried, because the second master's cell is unknown
	for range 2 {
		if looks, err := other.Read(t.Context(), []string{"k"}); err != nil || looks[0].Present {
			t.Error(looks, err)
		}
		arrives()
	}
	b.advance(removalTTL)
	b.wantHolds(". . .")
}

// TestReleaseByBallotWhileATakeMayArrive checks that a release by ballot is not done if the
// connection of a SET breaks meanwhile: the lock would reappear on the master that the SET still
// reaches, and on the master that promised the ballot.
func TestReleaseByBallotWhileATakeMayArrive(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		b := newFakeMasters(t, 3)
		r := b.proxy()
		b.setFateOf("take", slow, 2)
		b.lock(r, "me")
		entry := r.grants.find("k", withToken("me"))
		cell.Prepare{Name: "k", Ballot: cell.NumberedSource(big.NewInt(9)).Ballot(1)}.Apply(b.stores[1])
		b.fate = func(master int, op cell.Op) fate {
			if kindOf(op) != "remove" || master != 2 {
				return done
			}
			if breaks {
				r.grants.noteReply(entry, 2, Reply{State: Unknown})
			}
			return late
		}
		err := r.Unlock(t.Context(), "k", "me", nil)
		if errors.As(err, new(*NoQuorum)) != breaks || !breaks && err != nil {
			t.Errorf("the connection breaks: %v; UNLOCK: %v", breaks, err)
		}
	}
}
