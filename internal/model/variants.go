package model

import (
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// Variants of the protocol. Each of them switches one mechanism off.

// masters returns a variant in which masters execute operations differently. override executes an
// operation, or returns false to leave it to the operation's own Apply.
func masters(override func(op cell.Op, s *cell.Store) (cell.Answer, bool)) Variant {
	return Variant{Apply: func(op cell.Op, s *cell.Store) cell.Answer {
		if answer, did := override(op, s); did {
			return answer
		}
		return op.Apply(s)
	}}
}

// takesAnyFence makes masters take a lock with any fence.
func takesAnyFence() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		if t, is := op.(cell.Take); is && t.Fence != 0 {
			s.Delete(cell.FenceKey(key))
		}
		return cell.Answer{}, false
	})
}

// acceptsAnyIncarnation makes masters accept into a cell that another attempt created.
func acceptsAnyIncarnation() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		a, is := op.(cell.Accept)
		f := s.Look(key)
		if !is || f.Form != cell.Register && f.Form != cell.Plain || f.Promised > a.Ballot {
			return cell.Answer{}, false
		}
		f.Form, f.Attempt, f.Promised = cell.Register, a.Attempt, a.Ballot
		s.Put(key, f.Cell, f.Left)
		return cell.Answer{}, false
	})
}

// acceptsLate makes masters accept at any time.
func acceptsLate() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		a, is := op.(cell.Accept)
		if !is {
			return cell.Answer{}, false
		}
		a.Deadline = s.Now
		return a.Apply(s), true
	})
}

// acceptCreates makes masters accept even if the cell is absent.
func acceptCreates() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		a, is := op.(cell.Accept)
		if f := s.Look(key); is && f.Form == cell.Absent {
			s.Put(key, cell.Cell{Form: cell.Register, Attempt: a.Attempt, Promised: a.Ballot}, cell.Endless)
		}
		return cell.Answer{}, false
	})
}

// removes returns a variant in which a removal also deletes the cells for which of returns true.
func removes(how cell.Removal, of func(r cell.Remove, f cell.Found) bool) Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		r, is := op.(cell.Remove)
		f := s.Look(key)
		if !is || r.How != how || f.Form == cell.Absent || !of(r, f) {
			return cell.Answer{}, false
		}
		s.Delete(key)
		return cell.Answer{Did: true}, true
	})
}

// undoDeletesAccepted makes an undo delete a value that a ballot has put into the attempt's cell.
func undoDeletesAccepted() Variant {
	return removes(cell.Undo, func(r cell.Remove, f cell.Found) bool { return f.Attempt == r.Attempt })
}

// releaseDeletesPromised makes a release delete cells with a promised ballot.
func releaseDeletesPromised() Variant {
	return removes(cell.Release, func(r cell.Remove, f cell.Found) bool { return f.Attempt == r.Attempt })
}

// undoByValue makes an undo delete the lock of any attempt, as if a cell held only its token.
func undoByValue() Variant {
	return removes(cell.Undo, func(_ cell.Remove, f cell.Found) bool { return f.Form == cell.Plain })
}

// releaseByValue makes a release delete the lock of any attempt.
func releaseByValue() Variant {
	return removes(cell.Release, func(_ cell.Remove, f cell.Found) bool { return f.Form == cell.Plain })
}

// releaseCountsAbsent makes a release also count masters with an absent cell.
func releaseCountsAbsent() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		r, is := op.(cell.Remove)
		return cell.Answer{Did: true}, is && r.How == cell.Release && s.Look(key).Form == cell.Absent
	})
}

// refusesAlike makes all incarnations equal in the refusals of a LOCK.
func refusesAlike() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		t, is := op.(cell.Take)
		if !is {
			return cell.Answer{}, false
		}
		answer := t.Apply(s)
		for i := range answer.Found {
			answer.Found[i].Attempt = "one"
		}
		return answer, true
	})
}

// extendShortens makes an extension set the remaining time even if the remaining time was longer.
func extendShortens() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		x, is := op.(cell.Extend)
		f := s.Look(key)
		if is && f.Form == cell.Plain && f.Value.Text == x.Token {
			s.Put(key, f.Cell, x.TTL)
		}
		return cell.Answer{}, false
	})
}

// sends returns a variant in which proxies send changed operations.
func sends(other func(cell.Op) cell.Op) Variant { return Variant{Op: other} }

// noLineage removes from values the list of changes that led to them.
func noLineage() Variant {
	return sends(func(op cell.Op) cell.Op {
		if a, is := op.(cell.Accept); is {
			a.Value.Changes = nil
			return a
		}
		return op
	})
}

// longWithoutLineage leaves reads unsure whether the rest of a long value belongs to its head.
func longWithoutLineage() Variant {
	return Variant{Op: noLineage().Op, Options: longValues().Options}
}

// unlimited lifts the time limit of rounds, and so of accepts and kept promises.
func unlimited() Variant {
	return Variant{Options: func(o *register.Options) { o.Unlimited = true }}
}

// longValues makes all values count as long: a read asks one master for the rest after the head.
func longValues() Variant {
	return Variant{Options: func(o *register.Options) { o.HeadSize = 1 }}
}

// outOfTurn makes refills not wait for promises to expire that a marked master may have forgotten.
func outOfTurn() Variant { return Variant{Hurried: true} }

// unnoticed makes a take whose connection broke count as still pending.
func unnoticed() Variant { return Variant{Unnoticed: true} }

// catchesUp leaves rules of the catch-up out.
func catchesUp(c CatchUp) Variant { return Variant{CatchUp: c} }
