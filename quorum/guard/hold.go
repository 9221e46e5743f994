package guard

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/vote"
)

const (
	// fewSourcesDelay is the additional wait of a proxy that does not reach all other masters. A
	// proxy that reaches all masters can distinguish more leftovers from locks.
	fewSourcesDelay = Heartbeat
	// catchUpTime is the assumed time of a catch-up in announced waiting times.
	catchUpTime = time.Second
	// catchUpPause is the wait after a failed catch-up, reservedPause the wait while another proxy
	// does the catch-up.
	catchUpPause, reservedPause = 50 * time.Millisecond, Heartbeat / 4
	// proofTimeout is the time in which the sources must prove that they still vote. It begins
	// when this proxy first sees the quarantine record of a master. The proofs are necessary
	// because several masters may have lost data at once. proofPause is the wait between two checks
	// of these proofs.
	proofTimeout, proofPause = Heartbeat / 2, 10 * time.Millisecond
)

// quarantineStep keeps the master in quarantine until it has caught up, has proved that it lost
// nothing, or the longest lease has expired. All waits begin when this proxy first saw the record,
// by its own monotonic clock. The master's clock does not matter.
func (g *Guard) quarantineStep(ctx context.Context, v Report) (time.Duration, error) {
	r := v.Record.Value
	watchedSince, isNew := g.watchRecord(r, v.ClockReading.ReceivedAt)
	watchedFor := time.Since(watchedSince)
	if isNew { // before the sources reply, the known TTL may be far too short
		_ = g.set.askLongestTTL(ctx, g.set.voters(g.index))
	}
	if changed, err := g.recordBound(ctx, r); changed || err != nil {
		return 0, err
	}
	if !g.set.eras.isOwn(r) {
		r.Claim = marker.NoClaim // data of another era prove nothing
	}
	hasOpenClaim := g.set.eras.hasPendingClaim()
	if r.Claim != marker.NoClaim && !hasOpenClaim {
		if changed, err := g.evaluateClaim(ctx, v, r, watchedFor); changed || err != nil {
			return 0, err
		}
	}
	// A claim to have all data lacks support from other masters if it is still undecided after
	// allCheckedTime.
	claimPending := r.Claim != marker.NoClaim && watchedFor < allCheckedTime
	from := g.set.sourcesFor(g)
	from.targetUnused = r.Reason == string(Joining)
	untilCatchUp := roundGrace - watchedFor
	if len(from.sources) < from.masters-1 {
		untilCatchUp += fewSourcesDelay
	}
	lease, err := g.checkRemainingLease(ctx, r, min(watchedFor, g.set.eras.age(time.Now())), g.set.voters(g.index))
	// An open claim may mean that this era has ended. Then leases of the next era may last longer.
	if hasOpenClaim && !g.set.override.forced {
		lease = max(lease, Heartbeat/4)
	}
	switch {
	case err != nil:
		return catchUpPause, nil
	case lease <= 0:
		_, err := g.admit(ctx, v, marker.ProofLease)
		return 0, err
	}
	hasQuorum := from.hasReadQuorum()
	proved := hasQuorum && from.hasProofSince(watchedSince)
	if hasQuorum && !proved && watchedFor < proofTimeout {
		from.wake() // before the error states a remaining time
		return proofPause, nil
	}
	g.denyVote(newQuarantineError(r, g.set.maxTTLInUse, watchedFor, lease, untilCatchUp, proved, claimPending))
	switch {
	case untilCatchUp > 0:
		return min(untilCatchUp, lease), nil
	case !hasQuorum:
		return min(Heartbeat/4, lease), nil
	}
	return min(g.pauseAfter(g.catchUp(ctx, v, from)), lease), nil
}

// pauseAfter returns the time until the next check after a catch-up. If the catch-up failed, it
// logs the cause at debug level, because every cause is temporary.
func (g *Guard) pauseAfter(err error) time.Duration {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReserved):
		return reservedPause
	}
	g.log.Debug("catch-up given up for now", "master", g.Name, "cause", err)
	return catchUpPause
}

// checkRemainingLease returns the result of remainingLease. If no time is left, it first asks the
// sources for the present longest TTL, and calls remainingLease again.
func (g *Guard) checkRemainingLease(
	ctx context.Context, r marker.Record, watchTime time.Duration, sources []source,
) (time.Duration, error) {
	left := remainingLease(watchTime, g.set.maxTTLInUse.LongestLostTTL(r))
	if left > 0 {
		return left, nil
	}
	err := g.set.askLongestTTL(ctx, sources)
	return remainingLease(watchTime, g.set.maxTTLInUse.LongestLostTTL(r)), err
}

// remainingLease returns the time for which a client can still hold a lock that the master may have
// lost. If more time of allCheckedTime remains, it returns that time. watchTime is the time since a
// proxy first saw the master's record.
func remainingLease(watchTime, longestTTL time.Duration) time.Duration {
	return max(leaseWait(longestTTL), allCheckedTime) - watchTime
}

// newQuarantineError returns why a master with this record is in quarantine, and the maximum
// remaining time, as far as known. watchTime is the time since a proxy first saw the record.
func newQuarantineError(
	r marker.Record, ttl *maxTTLTracker, watchTime, lease, timeUntilCatchUp time.Duration, catchesUp, claimPending bool,
) *QuarantineError {
	ready := lease
	if catchesUp {
		ready = min(ready, max(0, timeUntilCatchUp)+catchUpTime)
	}
	if claimPending {
		ready = min(ready, max(0, allCheckedTime-watchTime)+catchUpTime)
	}
	_, known := ttl.Bound()
	return &QuarantineError{
		Cause: Reason(r.Reason), ReadyAt: time.Now().Add(ready), LongestKnownTTL: ttl.LargestRecord(),
		// If none of the conditions holds, the master waits for MaxTTL.
		AssumesMaxTTL: !r.Bounded && !known && !catchesUp && !claimPending,
	}
}

// Quarantines returns for each master the reason and the remaining time of its quarantine, or nil.
// It assumes that this process has watched each master for as long as the running proxies have.
func Quarantines(inspections []Inspection, maxTTL time.Duration) []*QuarantineError {
	ttl, voters, causes := newMaxTTLTracker(len(inspections), maxTTL), 0, make([]*QuarantineError, len(inspections))
	for i, v := range inspections {
		if v.Report != nil {
			ttl.Observe(i, v.Report.LongestTTL, v.Report.Votes())
			if v.Report.Votes() {
				voters++
			}
		}
	}
	for i, v := range inspections {
		if v.Report == nil {
			continue
		}
		if action, _ := judge(*v.Report, history{}); action == actionWait || action == actionEmpty {
			r, watchedFor := v.Report.Record.Value, v.Report.watchTime()
			lease, claimPending := remainingLease(watchedFor, ttl.LongestLostTTL(r)), r.Claim != marker.NoClaim && watchedFor < allCheckedTime
			catchesUp := voters >= vote.ReadQuorum(len(inspections))
			causes[i] = newQuarantineError(r, ttl, watchedFor, lease, roundGrace+fewSourcesDelay-watchedFor, catchesUp, claimPending)
		}
	}
	return causes
}

// askLongestTTL asks the sources for the present longest TTL in use. It returns an error if a
// source does not reply, or has a different marker.
func (s *Set) askLongestTTL(ctx context.Context, sources []source) error {
	var errs []error
	for _, src := range sources {
		list, err := databasesOf(ctx, src.guard.Conn)
		if err != nil || list.marker != marker.AppendDatabase(src.trust.String(), 0) {
			errs = append(errs, errSourceLost, err)
			continue
		}
		s.maxTTLInUse.Observe(src.guard.index, list.longestTTL, true)
	}
	return errors.Join(errs...)
}

// watchRecord returns the time at which this proxy first saw the record. isNew is set if this proxy
// has not seen the record before.
func (g *Guard) watchRecord(r marker.Record, seenAt time.Time) (since time.Time, isNew bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	isNew = g.watchedNonce != r.Nonce // the rest of the record may change
	if isNew {
		g.watchedNonce, g.watchedSince = r.Nonce, seenAt
	}
	return g.watchedSince, isNew
}

// recordBound writes to the record the longest TTL of the locks that the master may have lost. It
// does so as soon as this proxy knows that TTL or has the operator's override. So a proxy that
// starts later, when too few masters know the TTL, waits no longer than this proxy would. changed
// is set if recordBound tried to change the record.
func (g *Guard) recordBound(ctx context.Context, r marker.Record) (changed bool, err error) {
	bound, known := g.set.maxTTLInUse.Bound()
	if !known {
		bound, known = g.set.override.bound(bound, time.Now())
	}
	next := r.WithBound(bound)
	if o := g.set.override; o.forced {
		if next = r.WithOverride(o.ttl); next == r {
			return false, nil
		}
	} else if !known || r.IsFinal() || r.Bounded && r.Bound >= next.Bound {
		return false, nil
	}
	_, err = runInt(ctx, g.Conn, script.UpdateRecord, r.String(), next.String())
	return true, err
}

// evaluateClaim evaluates the claim of a master to have all its data. It removes the claim if this
// proxy, or another master, knows of newer data. It trusts the claim once every proxy has had time
// to object, and a majority of the masters, including this one, supports the claim. changed is set
// if the master must be checked again.
func (g *Guard) evaluateClaim(
	ctx context.Context, v Report, r marker.Record, watchedFor time.Duration,
) (changed bool, err error) {
	ownSeqs, err := g.ownSeqs(ctx, r.Claim)
	if err != nil {
		return false, err
	}
	g.mu.Lock()
	isBehind := ownSeqs.isBehind(g.seqs, r.Claim)
	g.mu.Unlock()
	if isBehind {
		return true, g.dropClaim(ctx, v, r)
	}
	if watchedFor < allCheckedTime {
		return false, nil
	}
	peers := g.peerSeqsOf(ctx, r.Claim, ownSeqs)
	if !peers.supports(ownSeqs, r.Claim, len(g.set.guards)) {
		if ownSeqs.isBehind(peers.highestSeqs, r.Claim) {
			return true, g.dropClaim(ctx, v, r)
		}
		return false, nil
	}
	proofArgs := []any{r.Claim}
	for field, n := range ownSeqs {
		proofArgs = append(proofArgs, field, n)
	}
	n, err := g.admit(ctx, v, marker.ProofIntact, proofArgs...)
	if err == nil && n < 0 {
		return true, g.dropClaim(ctx, v, r)
	}
	return true, err
}

// dropClaim removes the claim from the master's record.
func (g *Guard) dropClaim(ctx context.Context, v Report, r marker.Record) error {
	g.log.Info("master restarted with older data", "master", g.Name)
	result, err := runInt(ctx, g.Conn, script.DropClaim, v.Record.Text, r.WithoutClaim().String())
	if result == 1 {
		g.publishRetiredSeqs(ctx, v, marker.NoClaim)
	}
	return err
}
