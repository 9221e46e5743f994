package guard

import (
	"time"

	"redlock-proxy/quorum/guard/marker"
)

// nextAction is the action that follows a check of a master.
type nextAction int

const (
	actionTrust        nextAction = iota // the marker is valid: the master votes
	actionUpdateMarker                   // the same, but the marker's durability or replid has changed
	actionQuarantine                     // data may be lost: replace the marker by a record
	actionWait                           // the record is valid: the master is in quarantine
	actionUnmarked                       // no marker, no record, and no knowledge of the master
	actionEmpty                          // the record says that a proxy first saw the master empty
	actionEnded                          // the master's era has ended, or is not this proxy's
	actionJoin                           // the master voted in the former era
)

// isNew reports whether the master must stay unchanged, because its report shows no use by a proxy.
func (v nextAction) isNew() bool { return v == actionUnmarked || v == actionEmpty }

// history holds a proxy's knowledge of a master's past.
type history struct {
	// name is the master's address in the configuration.
	name string
	// nonce is the nonce of the last marker under which the master voted, or empty. runID is the
	// run_id of that marker.
	nonce, runID string
	// mayHoldLock is set while a lock that was granted under that marker may be held.
	mayHoldLock bool
	// seqWentBack is set if the sequence of that marker went back.
	seqWentBack bool
	// clockStepped is set if the guard has decided that the master's clock stepped.
	clockStepped bool
	// position is the relation of the marker's era to the proxy's era. isRecordOwn is set if the
	// master's record is of the proxy's era, or that era is unknown.
	position    eraPosition
	isRecordOwn bool
}

// judge returns the next action for a master with this report, and the reason for a quarantine. The
// report may be outdated when a script acts on it, so the script checks the master's state again.
func judge(v Report, past history) (nextAction, Reason) {
	m, marked := v.Marker.Value, v.Marker.Valid
	r, recorded := v.Record.Value, v.Record.Valid
	if marked && past.position == positionOwn && !m.Seal.IsNone() {
		past.position = positionEnded
	}
	switch {
	case marked && past.position == positionEnded:
		return actionEnded, Replaced
	case marked && m.RunID == v.RunID:
		return judgeMarked(v, past)
	case marked && past.clockStepped:
		return actionQuarantine, ClockStepped
	case marked && m.Address != past.name && m.Nonce != past.nonce:
		return actionQuarantine, Replicated
	case marked:
		return actionQuarantine, Restarted
	case recorded && r.RunID == v.RunID && past.clockStepped:
		return actionQuarantine, ClockStepped
	case recorded && r.RunID == v.RunID && v.Marker.Text == "" && r.Reason == string(Empty) && past.nonce != "":
		return actionQuarantine, Restarted // the master is not new: it voted for this proxy
	case recorded && r.RunID == v.RunID && v.Marker.Text == "" && r.Reason == string(Empty):
		return actionEmpty, Empty
	case recorded && r.RunID == v.RunID && v.Marker.Text == "":
		return actionWait, Reason(r.Reason)
	case v.Marker.Text == "" && v.Record.Text == "" && past.nonce == "":
		return actionUnmarked, Restarted
	case past.nonce != "" && past.runID == v.RunID:
		return actionQuarantine, Flushed
	default:
		return actionQuarantine, Restarted
	}
}

// judgeMarked judges a master whose marker is from its present run: the run_ids are equal.
func judgeMarked(v Report, past history) (nextAction, Reason) {
	m := v.Marker.Value
	switch {
	case past.clockStepped:
		return actionQuarantine, ClockStepped
	case m.ReplID != v.ReplID && (v.WasReplica || m.Nonce != past.nonce), past.seqWentBack && m.Nonce == past.nonce:
		return actionQuarantine, Replicated
	case v.Evicted > m.Evicted:
		return actionQuarantine, Evicted
	case m.Proof == marker.ProofFresh && m.Nonce != past.nonce && past.mayHoldLock:
		return actionQuarantine, Restarted // the master was not fresh: it may have lost a lock
	case past.position == positionStale && past.nonce != "" && m.Nonce != past.nonce:
		return actionQuarantine, Replicated // the master has voted under a later marker
	case past.position == positionStale:
		return actionQuarantine, Joining // the master was unreachable, and has lost nothing
	case past.position == positionFormer:
		return actionJoin, Joining
	case m.Durable && !v.Durable(), m.ReplID != v.ReplID:
		return actionUpdateMarker, ""
	default:
		return actionTrust, ""
	}
}

// claimOf returns the nonce of the marker whose data the master claims to have kept, or
// marker.NoClaim. A master makes this claim if it has always written every command to disk before
// it replied, and the marker is its own. A master that restarts before its claim is evaluated
// repeats the claim; see GUARD.md (Remark).
func claimOf(v Report, past history) string {
	m, marked := v.Marker.Value, v.Marker.Valid
	r, recorded := v.Record.Value, v.Record.Valid
	nonce, address := m.Nonce, m.Address
	switch {
	case v.RunID == NotReported, past.clockStepped, !v.Durable():
		return marker.NoClaim
	case marked && (m.RunID == v.RunID || !m.Durable || past.position != positionOwn):
		return marker.NoClaim
	case marked:
	case v.Marker.Text == "" && recorded && r.RunID != v.RunID && past.isRecordOwn:
		nonce, address = r.Claim, r.ClaimAddress
	default:
		return marker.NoClaim
	}
	if past.nonce == nonce || past.nonce == "" && address == past.name {
		return nonce
	}
	return marker.NoClaim
}

// State returns the state of the master's data, as the marker and the record on the master show it:
// "votes", "unmarked", or the reason why the master does not vote. For a quarantine it also returns
// the duration, by the master's clock.
func (v Report) State() (state string, duration time.Duration) {
	action, reason := judge(v, history{})
	switch {
	case action == actionTrust:
		return "votes", 0
	case action == actionUnmarked:
		return "unmarked", 0
	case action == actionWait, action == actionEmpty:
		start := time.Duration(v.Record.Value.WrittenAt) * time.Millisecond
		return "quarantine: " + reason.Sentence(1), v.ClockReading.ServerTime - start
	default:
		return "not proved: " + reason.Sentence(1), 0
	}
}

// Votes reports whether a proxy that starts now would count the master's votes: the marker is from
// the master's present run, and nothing contradicts it.
func (v Report) Votes() bool {
	action, _ := judge(v, history{})
	return action == actionTrust || action == actionUpdateMarker
}

// IsNew reports whether the master's report shows no use by a proxy since the master was empty.
// Then the master is new, or has lost its data.
func (v Report) IsNew() bool {
	action, _ := judge(v, history{})
	return action.isNew() && v.Empty && v.LongestTTL == 0
}
