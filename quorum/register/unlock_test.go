package register

import (
	"context"
	"errors"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func TestUnlock(t *testing.T) {
	for _, test := range []struct {
		name     string
		meantime func(*bench) // between LOCK and UNLOCK
		want     string
		holds    string
		rounds   string
	}{
		{"all well", func(*bench) {}, "granted", ". . . . .", "remove"},
		{"two are away", func(b *bench) { b.at(refused, 3, 4) }, "granted", ". . . me me", "remove"},
		{"two lose the answer", func(b *bench) { b.at(lost, 3, 4) }, "granted", ". . . . .", "remove"},
		{"three are away", func(b *bench) { b.at(refused, 2, 3, 4) }, "no quorum", ". . me me me", "remove"},
		{"three lose the answer", func(b *bench) { b.at(lost, 2, 3, 4) }, "no quorum", ". . . . .", "remove"},
		{"its lease is over", func(b *bench) { b.pass(11 * time.Second) }, "not held", ". . . . .", "remove"},
		{"gone by an operator's hand from most", func(b *bench) {
			for _, s := range b.stores[:3] {
				s.Delete("k")
			}
		}, "no quorum", ". . . . .", "remove"},
		{"over, and another took it with the same token", func(b *bench) { b.pass(11 * time.Second); b.lock(b.proxy(), "me") }, "granted", "-* -* -* -* -*", "remove prepare accept"},
		{"over, and another took it with another token", func(b *bench) { b.pass(11 * time.Second); b.lock(b.proxy(), "you") }, "not held", "you you you you you", "remove prepare"},
		{"another replaced it", func(b *bench) { _, err := b.proxy().Update(b.Context(), put("you")); b.sure(err); b.rounds = nil }, "not held", "you* you* you* you* you*", "remove prepare"},
		{"another looked into replacing it", func(b *bench) { _, err := b.proxy().Update(b.Context(), look(nil)); b.sure(err); b.rounds = nil }, "granted", "-* -* -* -* -*", "remove prepare prepare accept"},
		{"a ballot was promised on two only", func(b *bench) {
			b.of("prepare", unsent, 2, 3, 4)
			_, _ = b.proxy().Update(b.Context(), look(nil))
			b.rounds, b.fate = nil, nil
		}, "granted", "me* me* . . .", "remove"},
	} {
		b := newBench(t, 5)
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

// look is a change that only looks.
func look(at *Look) Change {
	return Change{Key: "k", Run: func(l Look) (Decision, error) {
		if at != nil {
			*at = l
		}
		return Decision{}, nil
	}}
}

// What a release could not tell is told when the masters are back.
func TestReleaseIsOwed(t *testing.T) {
	b := newBench(t, 5)
	r := b.proxy()
	b.lock(r, "me")
	b.at(refused, 3, 4)
	b.sure(r.Unlock(t.Context(), "k", "me", nil))
	b.pay()
	b.wantHolds(". . . me me")
	b.lock(b.proxy(), "you") // on the three that are well
	b.fate = nil
	b.pay()
	b.wantHolds("you you you . .")
}

// Another proxy's release takes a ballot; a lock can be taken right after it.
func TestUnlockThroughAnotherProxy(t *testing.T) {
	b := newBench(t, 3)
	owner, other := b.proxy(), b.proxy()
	b.lock(owner, "me")
	if err := other.Unlock(t.Context(), "k", "you", nil); outcome(err) != "not held" {
		t.Error(err)
	}
	b.wantRounds("prepare")
	b.wantHolds("me me me") // what knows no better leaves no trace
	b.sure(other.Unlock(t.Context(), "k", "me", nil))
	b.wantRounds("prepare accept")
	b.wantHolds("-* -* -*")
	if err := other.Unlock(t.Context(), "k", "me", nil); outcome(err) != "not held" {
		t.Error(err)
	}
	if err := owner.Unlock(t.Context(), "k", "me", nil); outcome(err) != "not held" {
		t.Error(err)
	}
	b.pass(removedFor)
	b.wantHolds(". . .")
}

func TestUnlockForeign(t *testing.T) {
	b := newBench(t, 3)
	b.foreign("me", 0, 1, 2)
	if err := b.proxy().Unlock(t.Context(), "k", "me", nil); outcome(err) != "foreign" {
		t.Error(err)
	}
	b.wantHolds("[me] [me] [me]")
}

func TestUnlockWhoLeaves(t *testing.T) {
	b := newBench(t, 3)
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

// TestJudgeRelease has the five masters say: d deleted, . nothing there, ? no answer, o another
// attempt, u that, without a vote, f it was not asked, r ours in register form, b a blocking copy
// of ours, gone with this. Of the lock the proxy knows: + the master took it, - it did not, ~ it
// still may.
func TestJudgeRelease(t *testing.T) {
	ours, others := attemptOf("a"), attemptOf("b")
	said := map[rune]Reply{
		'd': {State: Counted, Answer: cell.Answer{Did: true}},
		'.': {State: Counted, Answer: cell.Answer{Found: make([]cell.Found, 1)}},
		'?': {State: Unknown},
		'o': {State: Counted, Answer: cell.Answer{Found: []cell.Found{{Cell: cell.Cell{Form: cell.Plain, Attempt: others}}}}},
		'f': {State: Failed},
		'u': {State: Uncounted, Answer: cell.Answer{Found: []cell.Found{{Cell: cell.Cell{Form: cell.Plain, Attempt: others}}}}},
		'r': {State: Counted, Answer: cell.Answer{Found: []cell.Found{{Cell: cell.Cell{Form: cell.Register, Attempt: ours}}}}},
		'b': {State: Counted, Answer: cell.Answer{Found: []cell.Found{{Cell: cell.Cell{Form: cell.Blocking, Attempt: ours}}}}},
	}
	names := map[releaseVerdict]string{
		releaseUnknown: "unknown", releaseDone: "done", releaseNone: "none", releaseOther: "other", releaseByBallot: "by ballot",
	}
	for _, test := range []struct{ knows, said, want string }{
		{"+++++", "ddddd", "done"},
		{"+++++", "ddd??", "done"},
		{"+++++", "dd???", "unknown"},
		{"+++++", "?????", "unknown"},
		{"+++--", "ddd..", "done"},
		{"+++--", "dd?..", "done"},    // nobody but this can have deleted the third
		{"+++--", "d??..", "done"},    // nor these two
		{"+++--", "???..", "unknown"}, // it may have deleted none
		{"+++--", "???oo", "unknown"},
		{"+++~~", "dd?..", "unknown"}, // it may still arrive at the last two
		{"+++~~", "ddd..", "done"},
		{"+++~~", "dd?d.", "unknown"}, // deleted there may be a copy; the lock itself may still arrive
		{"+++-~", "dd?.d", "done"},    // nobody but this can have deleted the third, and the last alone is no majority
		{"+++++", "dd...", "unknown"}, // masters may have forgotten it
		{"+++++", ".....", "none"},
		{"+++++", "ooooo", "other"},
		{"+----", "oooff", "other"}, // this deleted nothing, and the others are too few
		{"+++--", "ooouf", "other"},
		{"+++++", "ooo?f", "unknown"}, // it may have deleted one
		{"+++++", "oo.ff", "unknown"},
		{"+++++", "ddooo", "unknown"},
		{"+++++", "??...", "unknown"},
		{"+++++", "???..", "unknown"},
		{"+++++", "ddr..", "by ballot"},
		{"+++++", "ddd.r", "done"},
		{"+++++", "rrrrr", "by ballot"},
		{"+++++", "bbddd", "done"},
	} {
		b := newBench(t, 5)
		g := &grant{attempt: ours, holders: make([]bool, 5), open: make([]bool, 5)}
		var replies []Reply
		for i := range test.said {
			g.holders[i], g.open[i] = test.knows[i] == '+', test.knows[i] == '~'
			replies = append(replies, said[rune(test.said[i])])
		}
		if got := names[b.proxy().judgeRelease(g, replies, time.Now())]; got != test.want {
			t.Errorf("%s: %s: %s, want %s", test.knows, test.said, got, test.want)
		}
	}
}

// A lock whose SET is still on its way to a master does not come back after its release.
func TestReleaseBeforeTheLockArrives(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	b.of("take", slow, 2)
	b.lock(r, "me")
	b.fate = nil
	b.of("remove", lost, 1)
	if err := r.Unlock(t.Context(), "k", "me", nil); outcome(err) == "granted" {
		t.Error("released, and it may stand again")
	}
	b.fate = nil
	b.deliver()
	b.pay()
}

// Where a SET may still arrive since its connection broke a ballot removes the lock: what is
// deleted nobody could tell from what it has not reached, and it would stand again.
func TestReleaseWhileATakeMayArrive(t *testing.T) {
	b := newBench(t, 3)
	r, other := b.proxy(), b.proxy()
	b.of("take", stray, 2)
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
	b.at(unsent, 1)
	arrives := func() {
		b.fate = nil
		b.deliver()
	}
	b.pausing = arrives // while the read is tried again, since it is not known what the second master holds
	for range 2 {
		if looks, err := other.Read(t.Context(), []string{"k"}); err != nil || looks[0].Present {
			t.Error(looks, err)
		}
		arrives()
	}
	b.pass(removedFor)
	b.wantHolds(". . .")
}
