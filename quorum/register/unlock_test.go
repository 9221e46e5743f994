package register

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func TestUnlock(t *testing.T) {
	for _, test := range []struct {
		name         string
		beforeUnlock func(*fakeMasters) // runs between LOCK and UNLOCK
		want         string
		wantCells    string
		rounds       string
	}{
		{"all well", func(*fakeMasters) {}, "granted", ". . . . .", "remove"},
		{"two are away", func(b *fakeMasters) { b.setFault(requestFailed, 3, 4) }, "granted", ". . . me me", "remove"},
		{"two lose the answer", func(b *fakeMasters) { b.setFault(replyLost, 3, 4) }, "granted", ". . . . .", "remove"},
		{"three are away", func(b *fakeMasters) { b.setFault(requestFailed, 2, 3, 4) }, "no quorum", ". . me me me", "remove"},
		{"three lose the answer", func(b *fakeMasters) { b.setFault(replyLost, 2, 3, 4) }, "no quorum", ". . . . .", "remove"},
		{"its lease has expired", func(b *fakeMasters) { b.advance(11 * time.Second) }, "not held", ". . . . .", "remove"},
		{"gone by an operator's hand from most", func(b *fakeMasters) {
			for _, s := range b.stores[:3] {
				s.Delete("k")
			}
		}, "no quorum", ". . . . .", "remove"},
		{"expired, and another took it with the same token", func(b *fakeMasters) {
			b.advance(11 * time.Second)
			b.mustLock(b.proxy(), "me")
		}, "granted", "-* -* -* -* -*", "remove prepare accept"},
		{"expired, and another took it with another token", func(b *fakeMasters) {
			b.advance(11 * time.Second)
			b.mustLock(b.proxy(), "you")
		}, "not held", "you you you you you", "remove prepare"},
		{"another replaced it", func(b *fakeMasters) {
			_, err := b.proxy().Update(b.Context(), putChange("you"))
			b.noError(err)
			b.rounds = nil
		}, "not held", "you* you* you* you* you*", "remove prepare"},
		{"another client read it by ballot", func(b *fakeMasters) {
			_, err := b.proxy().Update(b.Context(), readChange(nil))
			b.noError(err)
			b.rounds = nil
		}, "granted", "-* -* -* -* -*", "remove prepare prepare accept"},
		{"a ballot was promised on two only", func(b *fakeMasters) {
			b.setFaultOn("prepare", requestLost, 2, 3, 4)
			_, _ = b.proxy().Update(b.Context(), readChange(nil))
			b.rounds, b.faultOf = nil, nil
		}, "granted", ". . . . .", "remove"},
		{"the same, and one is away", func(b *fakeMasters) {
			b.setFaultOn("prepare", requestLost, 2, 3, 4)
			_, _ = b.proxy().Update(b.Context(), readChange(nil))
			b.rounds, b.faultOf = nil, nil
			b.setFault(requestFailed, 4)
		}, "granted", ". . . . me", "remove" + strings.Repeat(" prepare", maxBlockedTries) + " remove"},
	} {
		b := newFakeMasters(t, 5)
		r := b.proxy()
		b.mustLock(r, "me")
		test.beforeUnlock(b)
		if err := r.Unlock(t.Context(), "k", "me", nil); outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if got := b.cells("k"); got != test.wantCells {
			t.Errorf("%s: the masters hold %s, want %s", test.name, got, test.wantCells)
		}
		b.wantRounds(test.rounds)
	}
}

func readChange(snapshot *Snapshot) Change {
	return Change{Key: "k", Run: func(l Snapshot) (Decision, error) {
		if snapshot != nil {
			*snapshot = l
		}
		return Decision{}, nil
	}}
}

// TestRestIsRemovedLater checks that a cell that promised a ballot is removed although its master
// replied only after the release was done.
func TestRestIsRemovedLater(t *testing.T) {
	b := newFakeMasters(t, 5)
	r := b.proxy()
	b.mustLock(r, "me")
	b.setFaultOn("prepare", requestLost, 1, 2, 3, 4)
	_, _ = b.proxy().Update(b.Context(), readChange(nil))
	b.setFault(replyLate, 0)
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	b.wantCells("me* . . . .")
	b.faultOf = nil
	b.deliverPending()
	b.wantCells(". . . . .")
}

// TestReleaseHeedsLateReplies checks a release of which a ballot decides, because a majority replied
// and one of these masters had promised a ballot. The other masters reply before the ballot does, and
// their deletions count.
func TestReleaseHeedsLateReplies(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.putPlainCell("you", "z", time.Minute, 0) // what is left of another attempt
	r := b.proxy()
	b.mustLock(r, "me")
	b.setFaultOn("prepare", requestLost, 0, 1, 3, 4)
	_, _ = b.proxy().Update(b.Context(), readChange(nil))
	b.faultOf = func(m int, op cell.Op) fault {
		switch kind := kindOf(op); {
		case kind == "remove" && m >= 3:
			return replyLate
		case kind == "prepare":
			b.deliverPending()
		}
		return noFault
	}
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
}

// TestUnansweredReleaseIsRepeated checks that a master that does not reply to a release that others
// have decided receives it later, also if a ballot decided it.
func TestUnansweredReleaseIsRepeated(t *testing.T) {
	for _, promised := range []bool{false, true} {
		b := newFakeMasters(t, 5)
		r := b.proxy()
		b.mustLock(r, "me")
		if promised {
			b.setFaultOn("prepare", requestLost, 1, 2, 3, 4)
			_, _ = b.proxy().Update(b.Context(), readChange(nil))
		}
		b.setFault(requestFailed, 4)
		b.noError(r.Unlock(t.Context(), "k", "me", nil))
		b.faultOf = nil
		b.deliverRepeatedOps()
		b.wantCells(". . . . .")
	}
}

// TestRepeatedRelease checks that masters that are away receive the release later.
func TestRepeatedRelease(t *testing.T) {
	b := newFakeMasters(t, 5)
	r := b.proxy()
	b.mustLock(r, "me")
	b.setFault(requestFailed, 3, 4)
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	b.deliverRepeatedOps()
	b.wantCells(". . . me me")
	b.mustLock(b.proxy(), "you") // on the three masters that reply
	b.faultOf = nil
	b.deliverRepeatedOps()
	b.wantCells("you you you . .")
}

// TestUnlockThroughAnotherProxy checks that another proxy releases by ballot, and frees the key at
// once.
func TestUnlockThroughAnotherProxy(t *testing.T) {
	b := newFakeMasters(t, 3)
	owner, other := b.proxy(), b.proxy()
	b.mustLock(owner, "me")
	if err := other.Unlock(t.Context(), "k", "you", nil); outcome(err) != "not held" {
		t.Error(err)
	}
	b.wantRounds("prepare")
	b.wantCells("me me me") // an UNLOCK with another token leaves no trace
	b.noError(other.Unlock(t.Context(), "k", "me", nil))
	b.wantRounds("prepare accept")
	b.wantCells("-* -* -*")
	if err := other.Unlock(t.Context(), "k", "me", nil); outcome(err) != "not held" {
		t.Error(err)
	}
	if err := owner.Unlock(t.Context(), "k", "me", nil); outcome(err) != "not held" {
		t.Error(err)
	}
	b.advance(removalTTL)
	b.wantCells(". . .")
}

func TestUnlockForeign(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.putForeignCell("me", 0, 1, 2)
	if err := b.proxy().Unlock(t.Context(), "k", "me", nil); outcome(err) != "foreign" {
		t.Error(err)
	}
	b.wantCells("[me] [me] [me]")
}

func TestUnlockCanceled(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.mustLock(r, "me")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("left")
	cancel(cause)
	if err := r.Unlock(ctx, "k", "me", nil); !errors.Is(err, cause) {
		t.Error(err)
	}
	b.wantCells(". . .")
}

// TestEvaluateRelease evaluates the replies of five masters. Each reply is one character. d: the
// master deleted its cell. A dot: it held nothing. ?: it did not reply. o: it holds another
// attempt. u: it holds another attempt, but its vote does not count. f: the proxy did not send the
// release. r: the master holds our attempt in register form. b: it held a blocking copy of our
// attempt, which the release deleted. The proxy knows about each master: + it took the lock, - it
// did not take the lock, ~ it may still take the lock.
func TestEvaluateRelease(t *testing.T) {
	own, other := attemptOf("a"), attemptOf("b")
	found := func(form cell.Form, attempt cell.Attempt) cell.Answer {
		return cell.Answer{KeyStates: []cell.KeyState{{Cell: cell.Cell{Form: form, Attempt: attempt}}}}
	}
	replyOf := map[rune]Reply{
		'd': {State: Counted, Answer: cell.Answer{Applied: true}},
		'.': {State: Counted, Answer: cell.Answer{KeyStates: make([]cell.KeyState, 1)}},
		'?': {State: Unknown},
		'o': {State: Counted, Answer: found(cell.Plain, other)},
		'f': {State: Failed},
		'u': {State: Uncounted, Answer: found(cell.Plain, other)},
		'r': {State: Counted, Answer: found(cell.Register, own)},
		'b': {State: Counted, Answer: found(cell.Blocking, own)},
	}
	names := map[releaseResult]string{
		releaseUnknown: "unknown", releaseDone: "done", releaseTooLate: "none", releaseSuperseded: "other",
		releaseByBallot: "by ballot",
	}
	for _, test := range []struct{ knownMasters, replies, want string }{
		{"+++++", "ddddd", "done"},
		{"+++++", "ddd??", "done"},
		{"+++++", "dd???", "unknown"},
		{"+++++", "?????", "unknown"},
		{"+++--", "ddd..", "done"},
		{"+++--", "dd?..", "done"},    // the third master may still hold the lock, but is no majority
		{"+++--", "d??..", "done"},    // the second and third may still hold the lock, but are no majority
		{"+++--", "???..", "unknown"}, // the release may have deleted no cell
		{"+++--", "???oo", "unknown"},
		{"+++~~", "dd?..", "unknown"}, // the lock may still arrive at the last two
		{"+++~~", "ddd..", "done"},
		{"+++~~", "dd?d.", "unknown"}, // the deleted cell may be a copy; the lock may still arrive
		{"+++-~", "dd?.d", "done"},    // the third and last may still hold the lock, but are no majority
		{"+++++", "dd...", "unknown"}, // masters may have forgotten the lock
		{"+++++", ".....", "none"},
		{"+++++", "ooooo", "other"},
		{"+----", "oooff", "other"}, // the release deleted nothing, and the last two are too few
		{"+++--", "ooouf", "other"},
		{"+++++", "ooo?f", "unknown"}, // the release may have deleted one cell
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
		g := &grant{attempt: own, holders: make([]bool, 5), isPending: make([]bool, 5)}
		var replies []Reply
		for i := range test.replies {
			g.holders[i], g.isPending[i] = test.knownMasters[i] == '+', test.knownMasters[i] == '~'
			replies = append(replies, replyOf[rune(test.replies[i])])
		}
		if got := names[b.proxy().evaluateRelease(g, replies, time.Now())]; got != test.want {
			t.Errorf("%s: %s: %s, want %s", test.knownMasters, test.replies, got, test.want)
		}
	}
}

// TestReleaseAfterRemovalWithBlockingCopy removes a lock through another proxy, which masters 0 and 1
// miss. The removal expires, but for a blocking copy of it on master 2. The owner's UNLOCK finds a
// promise, and does not claim the removal as its own.
func TestReleaseAfterRemovalWithBlockingCopy(t *testing.T) {
	b := newFakeMasters(t, 5)
	r := b.proxy()
	b.mustLock(r, "me")
	attempt := b.stores[0].Get("k").Attempt
	b.setFault(requestLost, 0, 1)
	_, err := b.proxy().Update(t.Context(), Change{Key: "k", Run: func(Snapshot) (Decision, error) {
		return Decision{Action: Remove}, nil
	}})
	b.noError(err)
	for _, m := range []int{2, 3, 4} {
		b.stores[m].Delete("k")
	}
	b.stores[2].Put("k", cell.Cell{Form: cell.Blocking, Attempt: attempt}, time.Minute)
	b.faultOf = nil
	b.setFaultOn("prepare", requestLost, 0, 2, 3, 4)
	_, _ = b.proxy().Update(t.Context(), readChange(nil))
	b.faultOf = nil
	if err := r.Unlock(t.Context(), "k", "me", nil); err == nil {
		t.Error("released what another client had removed")
	}
}

// TestReleaseBeforeLock checks that UNLOCK reports no success if the SET has yet to reach
// one master, and another master's reply to the release is lost.
func TestReleaseBeforeLock(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.setFaultOn("take", requestLate, 2)
	b.mustLock(r, "me")
	b.faultOf = nil
	b.setFaultOn("remove", replyLost, 1)
	if err := r.Unlock(t.Context(), "k", "me", nil); outcome(err) == "granted" {
		t.Error("released, and it may stand again")
	}
	b.faultOf = nil
	b.deliverPending()
	b.deliverRepeatedOps()
}

// TestReleaseDuringTake checks that a ballot releases the lock if a SET may still arrive
// because its connection broke. A deleted cell would look like a cell that the SET has yet to
// reach.
func TestReleaseDuringTake(t *testing.T) {
	b := newFakeMasters(t, 3)
	r, other := b.proxy(), b.proxy()
	b.setFaultOn("take", connectionBroken, 2)
	b.mustLock(r, "me")
	b.faultOf = func(master int, op cell.Op) fault {
		switch kind := kindOf(op); {
		case master == 1 && (kind == "remove" || kind == "accept"):
			return requestLost
		default:
			return noFault
		}
	}
	if err := r.Unlock(t.Context(), "k", "me", nil); !errors.As(err, new(*NoQuorum)) {
		t.Error(err)
	}
	b.setFault(requestLost, 1)
	deliver := func() {
		b.faultOf = nil
		b.deliverPending()
	}
	b.onPause = deliver // while the read is retried, because the second master's cell is unknown
	for range 2 {
		if snapshots, err := other.Read(t.Context(), []string{"k"}); err != nil || snapshots[0].Present {
			t.Error(snapshots, err)
		}
		deliver()
	}
	b.advance(removalTTL)
	b.wantCells(". . .")
}

// TestReleaseByBallotDuringTake checks that a release by ballot does not succeed if the
// connection of a SET breaks meanwhile. The lock would reappear on two masters: the SET still
// reaches one, and the other promised the ballot.
func TestReleaseByBallotDuringTake(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		b := newFakeMasters(t, 3)
		r := b.proxy()
		b.setFaultOn("take", requestLate, 2)
		b.mustLock(r, "me")
		entry := r.grants.find("k", hasToken("me"))
		cell.Prepare{Name: "k", Ballot: cell.NumberedSource(big.NewInt(9)).Ballot(1)}.Apply(b.stores[1])
		b.faultOf = func(master int, op cell.Op) fault {
			if kindOf(op) != "remove" || master != 2 {
				return noFault
			}
			if breaks {
				r.grants.noteReply(entry, 2, Reply{State: Unknown})
			}
			return replyLate
		}
		err := r.Unlock(t.Context(), "k", "me", nil)
		if errors.As(err, new(*NoQuorum)) != breaks || !breaks && err != nil {
			t.Errorf("the connection breaks: %v; UNLOCK: %v", breaks, err)
		}
	}
}
