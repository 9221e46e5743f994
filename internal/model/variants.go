package model

import (
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// Variants are mechanisms of the protocol, each switched off.

// masters makes a variant of what masters do: other may do an operation otherwise, or leave
// it to the real one.
func masters(other func(op cell.Op, s *cell.Store) (cell.Answer, bool)) Variant {
	return Variant{Apply: func(op cell.Op, s *cell.Store) cell.Answer {
		if answer, did := other(op, s); did {
			return answer
		}
		return op.Apply(s)
	}}
}

// takesAnyFence takes a lock whatever its fence is.
func takesAnyFence() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		if t, is := op.(cell.Take); is && t.Fence != 0 {
			s.Delete(cell.FenceKey(key))
		}
		return cell.Answer{}, false
	})
}

// acceptsAnyIncarnation accepts into what another attempt created.
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

// acceptsLate accepts whenever an accept arrives.
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

// acceptCreates accepts also where there is nothing.
func acceptCreates() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		a, is := op.(cell.Accept)
		if f := s.Look(key); is && f.Form == cell.Absent {
			s.Put(key, cell.Cell{Form: cell.Register, Attempt: a.Attempt, Promised: a.Ballot}, cell.Endless)
		}
		return cell.Answer{}, false
	})
}

// removes changes what a removal may delete.
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

// undoDeletesAccepted has an undo delete what a ballot has put into the attempt's cell.
func undoDeletesAccepted() Variant {
	return removes(cell.Undo, func(r cell.Remove, f cell.Found) bool { return f.Attempt == r.Attempt })
}

// releaseDeletesPromised has a release delete cells for which a ballot was promised.
func releaseDeletesPromised() Variant {
	return removes(cell.Release, func(r cell.Remove, f cell.Found) bool { return f.Attempt == r.Attempt })
}

// undoByValue has an undo not name its attempt, as where a cell is its token alone.
func undoByValue() Variant {
	return removes(cell.Undo, func(_ cell.Remove, f cell.Found) bool { return f.Form == cell.Plain })
}

// releaseByValue has a release not name its attempt.
func releaseByValue() Variant {
	return removes(cell.Release, func(_ cell.Remove, f cell.Found) bool { return f.Form == cell.Plain })
}

// releaseCountsAbsent has a release count where there is nothing.
func releaseCountsAbsent() Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		r, is := op.(cell.Remove)
		return cell.Answer{Did: true}, is && r.How == cell.Release && s.Look(key).Form == cell.Absent
	})
}

// refusesAlike tells no incarnations apart where a LOCK is refused.
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

// extendShortens has an extension set the remaining time whatever it was.
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

// sends changes the operations that are sent.
func sends(other func(cell.Op) cell.Op) Variant { return Variant{Op: other} }

// noLineage has values not carry the changes that led to them.
func noLineage() Variant {
	return sends(func(op cell.Op) cell.Op {
		if a, is := op.(cell.Accept); is {
			a.Value.Changes = nil
			return a
		}
		return op
	})
}

// longWithoutLineage has reads not know whether what is behind a head belongs to it.
func longWithoutLineage() Variant {
	return Variant{Op: noLineage().Op, Options: longValues().Options}
}

// unlimited has rounds, and with them accepts and kept promises, take any time.
func unlimited() Variant {
	return Variant{Options: func(o *register.Options) { o.Unlimited = true }}
}

// longValues has values be long: reads ask one master for what is behind their heads.
func longValues() Variant {
	return Variant{Options: func(o *register.Options) { o.Heads = 1 }}
}

// outOfTurn has refills not wait until what a marked master may have promised before is over.
func outOfTurn() Variant { return Variant{Hurried: true} }

// unnoticed has a take whose connection broke count as one that will still be answered.
func unnoticed() Variant { return Variant{Unnoticed: true} }

// catchesUp leaves rules of catching up out.
func catchesUp(c CatchUp) Variant { return Variant{CatchUp: c} }
