package quorum

// Verdict is what a count of votes says so far.
type Verdict int

const (
	// Pending: the masters that have not answered yet can still turn the result.
	Pending Verdict = iota
	// Won: a majority of all masters said yes.
	Won
	// Lost: a majority answered, and too few of them can say yes.
	Lost
	// NoQuorum: fewer than a majority answered, or can still answer.
	NoQuorum
)

// String is the verdict in lower-case words.
func (v Verdict) String() string {
	switch v {
	case Won:
		return "won"
	case Lost:
		return "lost"
	case NoQuorum:
		return "no quorum"
	default:
		return "pending"
	}
}

// Majority is the least number of n masters of which any two such sets share
// one: ⌊n/2⌋+1.
func Majority(n int) int { return n/2 + 1 }

// Tally counts the votes of one operation. Yes and No are answers; Failed are
// the masters of which none will come: down, timed out, or answered an error.
// The rest of Masters is still awaited. It holds no clock and does no I/O.
type Tally struct {
	Masters, Yes, No, Failed int
}

func (t Tally) awaited() int  { return t.Masters - t.Yes - t.No - t.Failed }
func (t Tally) answered() int { return t.Yes + t.No }

// Verdict says Won, Lost or NoQuorum as soon as no answer still awaited can
// change it. A majority of yes wins. Without one, a majority of answers is Lost
// and less is NoQuorum: "held by another" is only said by masters that know.
func (t Tally) Verdict() Verdict {
	quorum := Majority(t.Masters)
	switch {
	case t.Yes >= quorum:
		return Won
	case t.Yes+t.awaited() >= quorum:
		return Pending
	default:
		return t.refused(quorum)
	}
}

// ReleaseVerdict counts the answers to "delete the key if it holds this token".
// Lost says that no majority can have held the token; Won that one may have and
// that none does any more. Unlike a grant, that does not need a majority of
// yes: see the package's notes on releases.
func (t Tally) ReleaseVerdict() Verdict {
	quorum := Majority(t.Masters)
	mayHaveHeld := t.Yes + t.Failed
	switch {
	case t.Yes >= quorum, t.answered() >= quorum && mayHaveHeld >= quorum:
		return Won
	case mayHaveHeld+t.awaited() < quorum:
		return t.refused(quorum)
	case t.answered()+t.awaited() < quorum:
		return NoQuorum
	default:
		return Pending
	}
}

// refused tells Lost from NoQuorum when yes is out of reach.
func (t Tally) refused(quorum int) Verdict {
	switch {
	case t.answered() >= quorum:
		return Lost
	case t.answered()+t.awaited() >= quorum:
		return Pending
	default:
		return NoQuorum
	}
}
