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
	// moreSources is how much longer a proxy waits that does not reach all the others: one
	// that does can distinguish more leftovers from locks.
	moreSources = Heartbeat
	// catchUpTime is what a catch-up is announced to take.
	catchUpTime = time.Second
	// catchUpPause is the wait after one that did not succeed, claimedPause that while another
	// proxy is at it.
	catchUpPause, claimedPause = 50 * time.Millisecond, Heartbeat / 4
	// askedPatience is how long the sources have to show that they vote still, from when a master
	// was seen in quarantine: several may have forgotten at once. provedPause is the wait between
	// two looks whether they did.
	askedPatience, provedPause = Heartbeat / 2, 10 * time.Millisecond
)

// hold keeps the master in quarantine until it caught up, proved that it forgot nothing, or
// the longest lease is over. All of these waits are by our own monotonic clock, since this
// proxy first saw the record: what the master's clock did meanwhile does not matter.
func (g *Guard) hold(ctx context.Context, v Report) (time.Duration, error) {
	r := v.Record.Value
	watched, begins := g.watch(r, v.Sighting.Got)
	if begins { // or the first that is heard of it may be far too short
		_ = g.set.askLongest(ctx, g.set.voters(g.index))
	}
	if !strings.HasSuffix(r.Nonce, g.set.eras.suffix()) {
		r.Claim = marker.NoClaim // to have all data of another set of masters
	}
	if did, err := g.bind(ctx, r); did || err != nil {
		return 0, err
	}
	open := g.set.eras.isOpen()
	if r.Claim != marker.NoClaim && !open {
		if did, err := g.weighClaim(ctx, v, r, watched); did || err != nil {
			return 0, err
		}
	}
	claims := r.Claim != marker.NoClaim && watched < allLooked // later, no other master supports it for now
	from := g.set.originFor(g)
	early := grace - watched
	if len(from.sources) < from.masters-1 {
		early += moreSources
	}
	lease, err := g.leaseLeft(ctx, r, min(watched, g.set.eras.lasted(time.Now())), g.set.voters(g.index))
	if open { // the set may be over, and the lease of another one's locks not
		lease = max(lease, Heartbeat/4)
	}
	switch {
	case err != nil:
		return catchUpPause, nil
	case lease <= 0:
		_, err := g.admit(ctx, v, marker.ProofLease)
		return 0, err
	}
	enough := from.enough()
	proved := enough && from.provedSince(g.since())
	if enough && !proved && watched < askedPatience {
		from.wake() // before anybody learns how long it takes
		return provedPause, nil
	}
	g.denyVote(quarantineOf(r, g.set.longest, watched, lease, early, proved, claims))
	switch {
	case early > 0:
		return min(early, lease), nil
	case !enough:
		return min(Heartbeat/4, lease), nil
	}
	return min(g.gaveUp(g.catchUp(ctx, v, from)), lease), nil
}

// gaveUp is when to look again after a catch-up, and logs why it was given up for now, if so: all
// causes pass by themselves.
func (g *Guard) gaveUp(err error) time.Duration {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errClaimed):
		return claimedPause
	}
	g.log.Debug("catch-up given up for now", "master", g.Name, "cause", err)
	return catchUpPause
}

// leaseLeft is for how long what the master may have forgotten can still live. Before it returns
// that this is over it asks the sources for the longest TTL as it is now.
func (g *Guard) leaseLeft(ctx context.Context, r marker.Record, watched time.Duration, sources []source) (time.Duration, error) {
	left := leaseLeft(watched, g.set.longest.Forgotten(r))
	if left > 0 {
		return left, nil
	}
	err := g.set.askLongest(ctx, sources)
	return leaseLeft(watched, g.set.longest.Forgotten(r)), err
}

// leaseLeft is for how long what the master may have forgotten can still live, watched
// after its record was first seen.
func leaseLeft(watched, longest time.Duration) time.Duration {
	return max(leaseWait(longest), allLooked) - watched
}

// quarantineOf is why a master with this record is in quarantine, and for how long at the most, as
// far as is known, where that was watched for so long.
func quarantineOf(r marker.Record, ttl *longestTTL, watched, lease, early time.Duration, catchesUp, claims bool) *QuarantineError {
	ready := lease
	if catchesUp {
		ready = min(ready, max(0, early)+catchUpTime)
	}
	if claims {
		ready = min(ready, max(0, allLooked-watched)+catchUpTime)
	}
	_, known := ttl.Bound()
	return &QuarantineError{
		Why: Reason(r.Reason), Ready: time.Now().Add(ready), AtLeast: ttl.Seen(),
		Assumed: !r.Bounded && !known && !catchesUp && !claims, // it waits for MaxTTL for want of knowledge
	}
}

// Quarantines returns of each master why it is in quarantine, or nil, and for how long, as a proxy
// sees it that has watched it for as long as any that runs.
func Quarantines(visits []Visit, maxTTL time.Duration) []*QuarantineError {
	ttl, voters, all := newLongest(len(visits), maxTTL), 0, make([]*QuarantineError, len(visits))
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
		if verdict, _ := judge(*v.Report, memory{}); verdict == onWait || verdict == onBlank {
			r, watched := v.Report.Record.Value, v.Report.watched()
			lease, claims := leaseLeft(watched, ttl.Forgotten(r)), r.Claim != marker.NoClaim && watched < allLooked
			all[i] = quarantineOf(r, ttl, watched, lease, grace+moreSources-watched, voters >= vote.ReadQuorum(len(visits)), claims)
		}
	}
	return all
}

// askLongest asks the sources for the longest TTL in use as it is now. The error is of those that
// do not answer.
func (s *Set) askLongest(ctx context.Context, sources []source) error {
	var lost []error
	for _, from := range sources {
		r, err := databasesOf(ctx, from.guard.Conn)
		if err != nil || r.marker != marker.InDatabase(from.trust.String(), 0) {
			lost = append(lost, errSourceLost, err)
			continue
		}
		s.longest.Saw(from.guard.index, r.longest, true)
	}
	return errors.Join(lost...)
}

// watch is for how long this proxy has seen the record; begins: it has not seen it before.
func (g *Guard) watch(r marker.Record, seen time.Time) (watched time.Duration, begins bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	begins = g.watched != r.Nonce // the rest of it may change
	if begins {
		g.watched, g.watchedSince = r.Nonce, seen
	}
	return time.Since(g.watchedSince), begins
}

// since is when this proxy first saw the record.
func (g *Guard) since() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watchedSince
}

// bind has the record say up to which TTL the master may have forgotten anything, as soon
// as this proxy knows it or has the operator's override: a proxy that starts later, when too few
// masters are left that know, then waits no longer than this one would. did is set where the
// record was changed.
func (g *Guard) bind(ctx context.Context, r marker.Record) (did bool, err error) {
	bound, known := g.set.longest.Bound()
	if !known {
		bound, known = g.set.override.bound(bound, time.Now())
	}
	next := r.Within(bound)
	if word := g.set.override; word.forced {
		if next = r.VouchedFor(word.ttl); next == r {
			return false, nil
		}
	} else if !known || r.IsFinal() || r.Bounded && r.Bound >= next.Bound {
		return false, nil
	}
	_, err = amend(ctx, g.Conn, script.Restate, r.String(), next.String())
	return true, err
}

// weighClaim takes the claim away that a master has all its data if this proxy, or another
// master, knows of younger ones. Once every proxy had the time to do so, it is believed.
// did is set where the master's state was changed.
func (g *Guard) weighClaim(ctx context.Context, v Report, r marker.Record, watched time.Duration) (did bool, err error) {
	has, err := g.ownAges(ctx, r.Claim)
	if err != nil {
		return false, err
	}
	g.mu.Lock()
	younger := has.isOlder(g.ages, r.Claim)
	g.mu.Unlock()
	if younger {
		return true, g.disclaim(ctx, v, r)
	}
	if watched < allLooked {
		return false, nil
	}
	elsewhere := g.agesElsewhere(ctx, r.Claim, has)
	if !elsewhere.supports(has, r.Claim, len(g.set.guards)) {
		if has.isOlder(elsewhere.ages, r.Claim) {
			return true, g.disclaim(ctx, v, r)
		}
		return false, nil
	}
	more := []any{r.Claim}
	for field, n := range has {
		more = append(more, field, n)
	}
	n, err := g.admit(ctx, v, marker.ProofRemark, more...)
	if err == nil && n < 0 {
		return true, g.disclaim(ctx, v, r)
	}
	return true, err
}

func (g *Guard) disclaim(ctx context.Context, v Report, r marker.Record) error {
	g.log.Info("a master restarted with older data than it had", "master", g.Name)
	did, err := amend(ctx, g.Conn, script.Disclaim, v.Record.Text, r.WithoutClaim().String())
	if did == 1 {
		g.retire(ctx, v, marker.NoClaim)
	}
	return err
}
