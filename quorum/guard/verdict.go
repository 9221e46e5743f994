package guard

import (
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

// verdictOn is what is to be done about a master after a look at it.
type verdictOn int

const (
	onTrust      verdictOn = iota // its marker holds: it votes
	onReword                      // the same, but the marker has to say otherwise: it is not durable any more, or has its first replica
	onQuarantine                  // it may have forgotten something: no marker, but a record
	onWait                        // its record holds: it is in quarantine
	onUnmarked                    // neither marker nor record, and nothing known of it
	onBlank                       // the same when a proxy first saw it, by its record
	onOver                        // its set of masters is over, or is not this proxy's
	onJoin                        // it voted in the set before this one
)

// isNew reports whether the master is to be left as it is, because no proxy has used it yet, as
// far as is known.
func (v verdictOn) isNew() bool { return v == onUnmarked || v == onBlank }

// memory is what a proxy remembers of a master from before.
type memory struct {
	// name is the master's, as in the configuration. suffix is at the end of the nonces of records
	// of its set of masters.
	name, suffix string
	// nonce is of the last marker that it voted under; empty: none. runID is that marker's.
	nonce, runID string
	// lives is set while what was granted under that marker may live.
	lives bool
	// older is set where the sequence of that marker went back.
	older bool
	// stepped is set where its clock does not fit the last sightings.
	stepped bool
	// position is that of its marker.
	position position
}

// judge decides what is to be done about a master with this report, and why where it
// is to go into quarantine. It is sure of what it sees only at that moment: what follows is
// done by scripts that look again.
func judge(v Report, past memory) (verdictOn, Reason) {
	m, marked := v.Marker.Value, v.Marker.Valid
	r, recorded := v.Record.Value, v.Record.Valid
	if marked && past.position == positionOwn && !m.Seal.IsNone() {
		past.position = positionOver
	}
	switch {
	case marked && past.position == positionOver:
		return onOver, Succeeded
	case marked && past.position == positionStale:
		return onQuarantine, Joins
	case marked && m.RunID == v.RunID:
		return judgeMarked(v, past)
	case marked && past.stepped:
		return onQuarantine, ClockStepped
	case marked && m.Address != past.name && m.Nonce != past.nonce:
		return onQuarantine, Replicated
	case marked:
		return onQuarantine, Restarted
	case recorded && r.RunID == v.RunID && past.stepped:
		return onQuarantine, ClockStepped
	case recorded && r.RunID == v.RunID && v.Marker.Text == "" && r.Reason == string(Blank) && past.nonce != "":
		return onQuarantine, Restarted // it was not as new as a proxy took it for
	case recorded && r.RunID == v.RunID && v.Marker.Text == "" && r.Reason == string(Blank):
		return onBlank, Blank
	case recorded && r.RunID == v.RunID && v.Marker.Text == "":
		return onWait, Reason(r.Reason)
	case v.Marker.Text == "" && v.Record.Text == "" && past.nonce == "":
		return onUnmarked, Restarted
	case past.nonce != "" && past.runID == v.RunID:
		return onQuarantine, Flushed
	default:
		return onQuarantine, Restarted
	}
}

// judgeMarked is for a master whose marker is of its present life.
func judgeMarked(v Report, past memory) (verdictOn, Reason) {
	m := v.Marker.Value
	switch {
	case past.stepped:
		return onQuarantine, ClockStepped
	case m.ReplID != v.ReplID && (v.WasReplica || m.Nonce != past.nonce), past.older && m.Nonce == past.nonce:
		return onQuarantine, Replicated
	case v.Evicted > m.Evicted:
		return onQuarantine, Evicted
	case m.Proof == marker.ProofFresh && m.Nonce != past.nonce && past.lives:
		return onQuarantine, Restarted // it was not as fresh as a proxy took it for
	case past.position == positionBefore:
		return onJoin, Joins
	case m.Durable && !v.Durable(), m.ReplID != v.ReplID:
		return onReword, ""
	default:
		return onTrust, ""
	}
}

// claimOf is the nonce of the marker from an earlier life whose data the master claims to have
// still, or noClaim: it wrote, and writes, everything to disk before it answers, and the marker is
// its own. Whether the claim is true is found out by the age of the data. A master that restarts
// before that is known claims what it claimed: its votes have not counted since, so it had no more
// to keep than before.
func claimOf(v Report, past memory) string {
	m, marked := v.Marker.Value, v.Marker.Valid
	r, recorded := v.Record.Value, v.Record.Valid
	nonce, of := m.Nonce, m.Address
	switch {
	case v.RunID == NotReported, past.stepped, !v.Durable():
		return marker.NoClaim
	case marked && (m.RunID == v.RunID || !m.Durable || past.position != positionOwn):
		return marker.NoClaim
	case marked:
	case v.Marker.Text == "" && recorded && r.RunID != v.RunID && strings.HasSuffix(r.Nonce, past.suffix):
		nonce, of = r.Claim, r.ClaimOf
	default:
		return marker.NoClaim
	}
	if past.nonce == nonce || past.nonce == "" && of == past.name {
		return nonce
	}
	return marker.NoClaim
}

// State is what proxies have left on the master to prove, or to deny, that it has all its
// data: "votes", "unmarked", or why it does not vote; and for a quarantine, since when it
// lasts by the master's clock.
func (v Report) State() (state string, since time.Duration) {
	verdict, why := judge(v, memory{})
	switch {
	case verdict == onTrust:
		return "votes", 0
	case verdict == onUnmarked:
		return "unmarked", 0
	case verdict == onWait, verdict == onBlank:
		return "quarantine: " + why.Sentence(1), v.Sighting.ServerTime - time.Duration(v.Record.Value.Since)*time.Millisecond
	default:
		return "not proved: " + why.Sentence(1), 0
	}
}

// Votes reports whether the master's marker is of its present life, so that a proxy which
// starts now would count its votes.
func (v Report) Votes() bool {
	verdict, _ := judge(v, memory{})
	return verdict == onTrust || verdict == onReword
}

// IsNew reports whether no proxy has used the master since it was empty, as far as it reports:
// it is new, or without its data.
func (v Report) IsNew() bool {
	verdict, _ := judge(v, memory{})
	return verdict.isNew() && v.Empty && v.Longest == 0
}
