package model

import (
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// Each variant of the protocol switches one mechanism off.

// masterVariant returns a variant in which masters execute operations differently. override
// executes an operation, or returns false to leave it to the operation's own Apply.
func masterVariant(override func(op cell.Op, s *cell.Store) (cell.Answer, bool)) Variant {
	return Variant{Apply: func(op cell.Op, s *cell.Store) cell.Answer {
		if answer, handled := override(op, s); handled {
			return answer
		}
		return op.Apply(s)
	}}
}

// anyFenceVariant makes masters take a lock with any fence.
func anyFenceVariant() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		if t, ok := op.(cell.Take); ok && t.Fence != 0 {
			s.Delete(cell.FenceKey(key))
		}
		return cell.Answer{}, false
	})
}

// anyIncarnationVariant makes masters accept into a cell that another attempt created.
func anyIncarnationVariant() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		a, ok := op.(cell.Accept)
		f := s.Get(key)
		if !ok || f.Form != cell.Register && f.Form != cell.Plain || f.Promised > a.Ballot {
			return cell.Answer{}, false
		}
		f.Form, f.Attempt, f.Promised = cell.Register, a.Attempt, a.Ballot
		s.Put(key, f.Cell, f.TimeLeft)
		return cell.Answer{}, false
	})
}

// lateAcceptVariant makes masters accept at any time.
func lateAcceptVariant() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		a, ok := op.(cell.Accept)
		if !ok {
			return cell.Answer{}, false
		}
		a.Deadline = s.Now
		return a.Apply(s), true
	})
}

// creatingAcceptVariant makes masters accept even if the cell is absent.
func creatingAcceptVariant() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		a, ok := op.(cell.Accept)
		if f := s.Get(key); ok && f.Form == cell.Absent {
			s.Put(key, cell.Cell{Form: cell.Register, Attempt: a.Attempt, Promised: a.Ballot}, cell.NoExpiry)
		}
		return cell.Answer{}, false
	})
}

// removalVariant returns a variant in which a removal also deletes the cells for which alsoDeletes
// returns true.
func removalVariant(mode cell.RemovalMode, alsoDeletes func(r cell.Remove, f cell.KeyState) bool) Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		r, ok := op.(cell.Remove)
		f := s.Get(key)
		if !ok || r.Mode != mode || f.Form == cell.Absent || !alsoDeletes(r, f) {
			return cell.Answer{}, false
		}
		s.Delete(key)
		return cell.Answer{Applied: true}, true
	})
}

// undoAcceptedVariant makes an undo delete a value that a ballot has put into the attempt's cell.
func undoAcceptedVariant() Variant {
	return removalVariant(cell.Undo, func(r cell.Remove, f cell.KeyState) bool { return f.Attempt == r.Attempt })
}

// releasePromisedVariant makes a release delete cells with a promised ballot.
func releasePromisedVariant() Variant {
	return removalVariant(cell.Release, func(r cell.Remove, f cell.KeyState) bool { return f.Attempt == r.Attempt })
}

// releaseBlockingVariant makes a release delete blocking copies, too.
func releaseBlockingVariant() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		r, ok := op.(cell.Remove)
		f := s.Get(key)
		if !ok || r.Mode != cell.Release || f.Form != cell.Blocking || f.Attempt != r.Attempt {
			return cell.Answer{}, false
		}
		s.Delete(key)
		return cell.Answer{KeyStates: []cell.KeyState{f}}, true
	})
}

// undoByValue makes an undo delete the lock of any attempt, as if a cell held only its token.
func undoByValue() Variant {
	return removalVariant(cell.Undo, func(_ cell.Remove, f cell.KeyState) bool { return f.Form == cell.Plain })
}

// releaseByValue makes a release delete the lock of any attempt.
func releaseByValue() Variant {
	return removalVariant(cell.Release, func(_ cell.Remove, f cell.KeyState) bool { return f.Form == cell.Plain })
}

// releaseAbsentVariant makes a release also count masters with an absent cell.
func releaseAbsentVariant() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		r, ok := op.(cell.Remove)
		return cell.Answer{Applied: true}, ok && r.Mode == cell.Release && s.Get(key).Form == cell.Absent
	})
}

// equalRefusals makes all incarnations equal in the refusals of a LOCK.
func equalRefusals() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		t, ok := op.(cell.Take)
		if !ok {
			return cell.Answer{}, false
		}
		answer := t.Apply(s)
		for i := range answer.KeyStates {
			answer.KeyStates[i].Attempt = "one"
		}
		return answer, true
	})
}

// refusalCountsAsHeld makes a refusal because of the other key count as if a client held that key.
func refusalCountsAsHeld() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		t, ok := op.(cell.Take)
		if !ok || s.Get(otherKey).Form == cell.Absent {
			return cell.Answer{}, false
		}
		answer := t.Apply(s)
		answer.KeyStates[1].Cell = cell.Cell{Form: cell.Plain, Attempt: otherAttempt, Value: cell.Value{Present: true}}
		return answer, true
	})
}

// partialTakeVariant makes a master take the key even if it refuses the operation because of the
// other key.
func partialTakeVariant() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		t, ok := op.(cell.Take)
		if !ok || s.Get(otherKey).Form == cell.Absent {
			return cell.Answer{}, false
		}
		answer := t.Apply(s)
		t.Names = t.Names[:1]
		t.Apply(s)
		return answer, true
	})
}

// shorteningExtendVariant makes an extension set the remaining time even if the remaining time was
// longer.
func shorteningExtendVariant() Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		x, ok := op.(cell.Extend)
		f := s.Get(key)
		if ok && f.Form == cell.Plain && f.Value.Text == x.Token {
			s.Put(key, f.Cell, x.TTL)
		}
		return cell.Answer{}, false
	})
}

// sendVariant returns a variant in which proxies send changed operations.
func sendVariant(change func(cell.Op) cell.Op) Variant { return Variant{ChangeOp: change} }

// noChangeList makes proxies write values without the list of changes that led to them.
func noChangeList() Variant {
	return sendVariant(func(op cell.Op) cell.Op {
		if a, ok := op.(cell.Accept); ok {
			a.Value.Changes = nil
			return a
		}
		return op
	})
}

// longValuesWithoutChangeList combines longValues and noChangeList. Then a read cannot detect a rest that does
// not belong to the head of a long value.
func longValuesWithoutChangeList() Variant {
	return Variant{ChangeOp: noChangeList().ChangeOp, Options: longValues().Options}
}

// unlimitedRounds lifts the time limit of rounds, and so of accepts and kept promises.
func unlimitedRounds() Variant {
	return Variant{Options: func(o *register.Options) { o.Unlimited = true }}
}

// longValues makes all values count as long: a read asks one master for the rest after the head.
func longValues() Variant {
	return Variant{Options: func(o *register.Options) { o.HeadSize = 1 }}
}

// withoutRefillWait lets a refill start immediately. Promises that a marked master may have
// forgotten have not expired then.
func withoutRefillWait() Variant { return Variant{SkipRefillWait: true} }

// ignoredBreaksVariant makes a take whose connection broke count as still pending.
func ignoredBreaksVariant() Variant { return Variant{IgnoreBreaks: true} }

// catchUpVariant leaves rules of the catch-up out.
func catchUpVariant(c CatchUp) Variant { return Variant{CatchUp: c} }
