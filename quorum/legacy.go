package quorum

// The legacy server is the single Redis that held the locks until now. While some
// clients still lock there directly, it has to agree to whatever a majority of the
// masters agrees to, and what it holds is held.

// legacyAnswer is the legacy server's, or nil where there is none.
func (r *round) legacyAnswer() *answer {
	if r.tally.Masters == len(r.answers) {
		return nil
	}
	return &r.answers[r.tally.Masters]
}

// besideLegacy is the verdict of the masters and the legacy server together.
func (c Change) besideLegacy(masters Verdict, legacy answer) Verdict {
	switch {
	case c.kind == kindPlain:
		return masters
	case masters == Pending, masters == NoQuorum:
		return masters
	case !legacy.here:
		return Pending
	case legacy.vote == voteFailed:
		return NoQuorum
	case c.kind == kindRead:
		return masters
	case c.kind == kindRelease && (masters == Won || legacy.vote == voteYes):
		return Won // clients that are not behind the proxy lock at the legacy server alone
	case legacy.vote != voteYes:
		return Lost
	default:
		return masters
	}
}

// beside adds what the legacy server holds: its value counts, whatever the masters
// hold, because clients may have taken it there alone.
func (h Holding) beside(legacy Entry) Holding {
	switch {
	case !legacy.Present:
		return h
	case h.Held && h.Value == legacy.Value && compareLeft(h.Left, legacy.Left) < 0:
		return h
	default:
		return Holding{Held: true, Value: legacy.Value, Left: legacy.Left}
	}
}
