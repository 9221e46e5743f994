package guard

import (
	"context"
	"errors"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/vote"
)

const (
	// fewSourcesDelay is the additional wait of a proxy that does not reach all other masters. A
	// proxy that reaches all can distinguish more leftovers from locks.
	fewSourcesDelay = Heartbeat
	// catchUpTime is the assumed time of a catch-up in announced waiting times.
	catchUpTime = time.Second
	// catchUpPause is the wait after a failed catch-up, reservedPause the wait while another proxy
	// does the catch-up.
	catchUpPause, reservedPause = 50 * time.Millisecond, Heartbeat / 4
	// proofPatience is how long the sources have to prove that they still vote, after a master was
	// seen in quarantine: several may have lost data at once. provedPause is the wait between two
	// checks of these proofs.
	proofPatience, provedPause = Heartbeat / 2, 10 * time.Millisecond
)

// quarantineStep keeps the master in quarantine until it has caught up, has proved that it lost
// nothing, or the longest lease has expired. All waits are by our own monotonic clock, since this
// proxy first saw the record: the master's clock does not matter.
func (g *Guard) quarantineStep(ctx context.Context, v Report) (time.Duration, error) {
	r := v.Record.Value
	watched, begins := g.watch(r, v.Sighting.Got)
	if begins { // otherwise the first known TTL may be far too short
		_ = g.set.askLongest(ctx, g.set.voters(g.index))
	}
	if !strings.HasSuffix(r.Nonce, g.set.eras.recordSuffix()) {
		r.Claim = marker.NoClaim // data of another era prove nothing
	}
	if did, err := g.recordBound(ctx, r); did || err != nil {
		return 0, err
	}
	open := g.set.eras.hasOpenClaim()
	if r.Claim != marker.NoClaim && !open {
		if did, err := g.evaluateClaim(ctx, v, r, watched); did || err != nil {
			return 0, err
		}
	}
	claims := r.Claim != marker.NoClaim && watched < allChecked // later: no other master supports the claim at present
	from := g.set.sourcesFor(g)
	early := roundGrace - watched
	if len(from.sources) < from.masters-1 {
		early += fewSourcesDelay
	}
	lease, err := g.leaseLeft(ctx, r, min(watched, g.set.eras.age(time.Now())), g.set.voters(g.index))
	if open { // this era may have ended, but leases of another era may last
		lease = max(lease, Heartbeat/4)
	}
	switch {
	case err != nil:
		return catchUpPause, nil
	case lease <= 0:
		_, err := g.admit(ctx, v, marker.ProofLease)
		return 0, err
	}
	enough := from.hasReadQuorum()
	proved := enough && from.provedSince(g.since())
	if enough && !proved && watched < proofPatience {
		from.wake() // before a remaining time is reported
		return provedPause, nil
	}
	g.denyVote(quarantineOf(r, g.set.maxTTLInUse, watched, lease, early, proved, claims))
	switch {
	case early > 0:
		return min(early, lease), nil
	case !enough:
		return min(Heartbeat/4, lease), nil
	}
	return min(g.pauseAfter(g.catchUp(ctx, v, from)), lease), nil
}

// pauseAfter returns the time until the next check after a catch-up. If the catch-up failed, it
// logs the cause at debug level, because every cause passes by itself.
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

// leaseLeft returns how long a lock that the master may have lost can still be held. Before it
// returns that this time has passed, it asks the sources for the present longest TTL.
func (g *Guard) leaseLeft(
	ctx context.Context, r marker.Record, watched time.Duration, sources []source,
) (time.Duration, error) {
	left := leaseLeft(watched, g.set.maxTTLInUse.Forgotten(r))
	if left > 0 {
		return left, nil
	}
	err := g.set.askLongest(ctx, sources)
	return leaseLeft(watched, g.set.maxTTLInUse.Forgotten(r)), err
}

// leaseLeft returns how long a lock that the master may have lost can still be held. watched is the
// time since the master's record was first seen.
func leaseLeft(watched, longest time.Duration) time.Duration {
	return max(leaseWait(longest), allChecked) - watched
}

// quarantineOf returns why a master with this record is in quarantine, and the maximum remaining
// time, as far as known. watched is the time since the record was first seen.
func quarantineOf(
	r marker.Record, ttl *maxTTLTracker, watched, lease, early time.Duration, catchesUp, claims bool,
) *QuarantineError {
	ready := lease
	if catchesUp {
		ready = min(ready, max(0, early)+catchUpTime)
	}
	if claims {
		ready = min(ready, max(0, allChecked-watched)+catchUpTime)
	}
	_, known := ttl.Bound()
	return &QuarantineError{
		Why: Reason(r.Reason), Ready: time.Now().Add(ready), AtLeast: ttl.Seen(),
		Assumed: !r.Bounded && !known && !catchesUp && !claims, // otherwise the master waits for MaxTTL
	}
}

// Quarantines returns for each master why it is in quarantine, and for how long, or nil. It assumes
// that it has watched each master for as long as the running proxies have.
func Quarantines(visits []Inspection, maxTTL time.Duration) []*QuarantineError {
	ttl, voters, all := newMaxTTLTracker(len(visits), maxTTL), 0, make([]*QuarantineError, len(visits))
	for i, v := range visits {
		if v.Report != nil {
			ttl.Saw(i, v.Report.Longest, v.Report.Votes())
			if v.Report.Votes() {
				voters++
			}
		}
	}
	for i, v := range visits {
		if v.Report == nil {
			continue
		}
		if verdict, _ := judge(*v.Report, history{}); verdict == actionWait || verdict == actionEmpty {
			r, watched := v.Report.Record.Value, v.Report.watched()
			lease, claims := leaseLeft(watched, ttl.Forgotten(r)), r.Claim != marker.NoClaim && watched < allChecked
			catchesUp := voters >= vote.ReadQuorum(len(visits))
			all[i] = quarantineOf(r, ttl, watched, lease, roundGrace+fewSourcesDelay-watched, catchesUp, claims)
		}
	}
	return all
}

// askLongest asks the sources for the present longest TTL in use. It returns an error if a source
// does not reply, or has another marker.
func (s *Set) askLongest(ctx context.Context, sources []source) error {
	var lost []error
	for _, from := range sources {
		r, err := databasesOf(ctx, from.guard.Conn)
		if err != nil || r.marker != marker.InDatabase(from.trust.String(), 0) {
			lost = append(lost, errSourceLost, err)
			continue
		}
		s.maxTTLInUse.Saw(from.guard.index, r.longest, true)
	}
	return errors.Join(lost...)
}

// watch returns how long this proxy has seen the record. begins is set if this proxy has not seen
// it before.
func (g *Guard) watch(r marker.Record, seen time.Time) (watched time.Duration, begins bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	begins = g.watched != r.Nonce // the rest of the record may change
	if begins {
		g.watched, g.watchedSince = r.Nonce, seen
	}
	return time.Since(g.watchedSince), begins
}

// since returns when this proxy first saw the record.
func (g *Guard) since() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watchedSince
}

// recordBound writes to the record the longest TTL of the locks that the master may have lost, as
// soon as this proxy knows it or has the operator's override. So a proxy that starts later, when
// too few masters know the TTL, waits no longer than this proxy would. did is set if the record was
// changed.
func (g *Guard) recordBound(ctx context.Context, r marker.Record) (did bool, err error) {
	bound, known := g.set.maxTTLInUse.Bound()
	if !known {
		bound, known = g.set.override.bound(bound, time.Now())
	}
	next := r.Within(bound)
	if word := g.set.override; word.forced {
		if next = r.WithOverride(word.ttl); next == r {
			return false, nil
		}
	} else if !known || r.IsFinal() || r.Bounded && r.Bound >= next.Bound {
		return false, nil
	}
	_, err = runInt(ctx, g.Conn, script.UpdateRecord, r.String(), next.String())
	return true, err
}

// evaluateClaim evaluates the claim of a master to have all its data. It removes the claim if this
// proxy, or another master, knows of newer data. It trusts the claim once every proxy had time to
// object. did is set if the master's state was changed.
func (g *Guard) evaluateClaim(
	ctx context.Context, v Report, r marker.Record, watched time.Duration,
) (did bool, err error) {
	has, err := g.ownSeqs(ctx, r.Claim)
	if err != nil {
		return false, err
	}
	g.mu.Lock()
	younger := has.isBehind(g.seqs, r.Claim)
	g.mu.Unlock()
	if younger {
		return true, g.dropClaim(ctx, v, r)
	}
	if watched < allChecked {
		return false, nil
	}
	peers := g.peerSeqsOf(ctx, r.Claim, has)
	if !peers.supports(has, r.Claim, len(g.set.guards)) {
		if has.isBehind(peers.seqs, r.Claim) {
			return true, g.dropClaim(ctx, v, r)
		}
		return false, nil
	}
	more := []any{r.Claim}
	for field, n := range has {
		more = append(more, field, n)
	}
	n, err := g.admit(ctx, v, marker.ProofIntact, more...)
	if err == nil && n < 0 {
		return true, g.dropClaim(ctx, v, r)
	}
	return true, err
}

func (g *Guard) dropClaim(ctx context.Context, v Report, r marker.Record) error {
	g.log.Info("master restarted with older data", "master", g.Name)
	did, err := runInt(ctx, g.Conn, script.DropClaim, v.Record.Text, r.WithoutClaim().String())
	if did == 1 {
		g.publishRetired(ctx, v, marker.NoClaim)
	}
	return err
}
