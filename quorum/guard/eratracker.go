package guard

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// Reconfiguration describes the end of an era.
type Reconfiguration struct {
	// Era is the era that has ended. If Begun is set, Era is its successor, in which masters
	// already vote.
	Era   reconfig.Era
	Begun bool
	// Change leads to the successor. It is empty if only other proxies know the change.
	Change reconfig.Change
}

// eraTracker holds a proxy's knowledge of its masters' present and former eras. It trusts no single
// master: a marker that shows the end of the era is only a claim until another master supports it.
type eraTracker struct {
	names []string

	mu sync.Mutex
	// ownEraKnown is set if ownEra is the present era. ownEraSince is the time at which this proxy
	// learned that the era follows an earlier one, or zero.
	ownEraKnown bool
	ownEra      reconfig.Era
	ownEraSince time.Time
	// claims holds the last claim of each master, by index. recordedEras holds the era of the
	// quarantine record of a master without a marker. It is no claim, because masters in quarantine
	// may miss later eras.
	claims       map[int]eraClaim
	recordedEras map[int]reconfig.Era
	// checkedMasters holds the masters that have been checked, with or without a marker.
	// mayHaveVoted holds the masters that may have voted in this era, as far as their last reports
	// show. hasVoted holds the masters that once had a marker of this era, even if their data were
	// set back to an earlier marker.
	checkedMasters, mayHaveVoted, hasVoted map[int]bool
	// majorityVoted is set once a majority of the masters voted for this proxy in this era.
	majorityVoted bool
	// credibleNonces holds the nonces of the markers with credible claims, refutedNonces the nonces
	// that a majority contradicted.
	credibleNonces, refutedNonces map[string]bool
	// sizeReports holds the masters' reports of the size of the previous set. If this proxy took
	// part in the previous era, formerEra is that era, and formerMembers holds the indexes of the
	// masters that belonged to it.
	sizeReports   map[sizeReport]bool
	formerEra     reconfig.Era
	formerMembers map[int]bool
	// reconfiguration is set once a credible claim shows that this era has ended, or that the
	// masters are in a different era.
	reconfiguration *Reconfiguration
	// lastNewBallot is the time at which this proxy last saw a new ballot; a change may follow.
	// announcedLocations holds, by index of the master, the location that a proxy announced with a
	// ballot.
	lastNewBallot      time.Time
	announcedLocations map[int]announcedLocation
	// moveLeases holds each master's last report about the proxy that moves the locks, by index.
	moveLeases map[int]moveLease
}

// announcedLocation holds a future location of the locks, and the time at which this proxy saw its
// announcement.
type announcedLocation struct {
	target location.Place
	seenAt time.Time
}

// sizeReport holds a master's report of the size of the previous set.
type sizeReport struct{ size, master int }

func newEraTracker(masters []Master, joinedEra *reconfig.Era, now time.Time) *eraTracker {
	e := &eraTracker{
		claims: map[int]eraClaim{}, recordedEras: map[int]reconfig.Era{},
		checkedMasters: map[int]bool{}, mayHaveVoted: map[int]bool{}, hasVoted: map[int]bool{},
		credibleNonces: map[string]bool{}, refutedNonces: map[string]bool{},
		sizeReports: map[sizeReport]bool{}, announcedLocations: map[int]announcedLocation{}, moveLeases: map[int]moveLease{},
	}
	for _, m := range masters {
		e.names = append(e.names, m.Name)
	}
	if joinedEra != nil {
		e.ownEraKnown, e.ownEra, e.ownEraSince = true, *joinedEra, now
	}
	return e
}

// setFormerTracker records the former era, if this era follows it directly.
func (e *eraTracker) setFormerTracker(formerTracker *eraTracker) {
	formerTracker.mu.Lock()
	defer formerTracker.mu.Unlock()
	if !e.ownEraKnown || !formerTracker.ownEraKnown || formerTracker.ownEra.Number+1 != e.ownEra.Number {
		return
	}
	e.formerEra, e.formerMembers = formerTracker.ownEra, map[int]bool{}
	for i, name := range e.names {
		e.formerMembers[i] = slices.Contains(formerTracker.names, name)
	}
}

// observe stores the report of a master. isNews is set if the guards must check the other masters
// at once. The reason is that the present era became known, or that a new marker claims that the
// era has ended.
func (e *eraTracker) observe(i int, v Report, now time.Time) (isNews bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := v.Marker.Value
	e.checkedMasters[i] = true
	delete(e.recordedEras, i)
	if !v.Marker.Valid {
		delete(e.claims, i)
		if era, stated := v.Record.Value.Era(); stated {
			e.recordedEras[i] = era
		}
		e.mayHaveVoted[i] = e.hasVoted[i] || !v.isUnusedByRecord()
		return e.determineEra(now)
	}
	era, ballot, _ := strings.Cut(v.Promise, " ")
	previous := e.claims[i]
	claim := eraClaim{
		Marker: m, promiseEra: era, promiseBallot: ballot, firstSeen: previous.firstSeen, lastAsked: v.ClockReading.SentAt,
		sameRun: v.keepsMarkedData(), wasMember: e.formerMembers[i],
	}
	if previous.Nonce != m.Nonce || previous.Era != m.Era || !previous.Seal.Equals(m.Seal.Change) {
		claim.firstSeen = now
	}
	if claim.promiseBallot != previous.promiseBallot && previous.Nonce != "" {
		e.lastNewBallot = now
		if _, text, found := strings.Cut(claim.promiseBallot, locationSeparator); found && claim.promiseEra == m.Era.String() {
			e.announcedLocations[i] = announcedLocation{location.Parse(text), now}
		}
	}
	e.claims[i] = claim
	settled := e.determineEra(now)
	e.hasVoted[i] = e.hasVoted[i] || e.ownEraKnown && m.Era == e.ownEra
	e.mayHaveVoted[i] = e.hasVoted[i] || !e.isUnusedInEra(claim)
	if e.positionOf(claim) == positionFormer {
		e.sizeReports[sizeReport{claim.Seal.PreviousMasterCount, i}] = true
	}
	for _, other := range e.claims {
		if e.positionOf(other) == positionEnded {
			e.evaluate(other)
		}
	}
	return settled || claim.firstSeen == now && e.positionOf(claim) == positionEnded
}

// keepsMarkedData reports whether the master has neither restarted nor been a replica since it got
// its marker. Then it has lost nothing since.
func (v Report) keepsMarkedData() bool {
	m := v.Marker.Value
	return m.RunID == v.RunID && (m.ReplID == v.ReplID || !v.WasReplica)
}

// isUnusedByRecord reports whether a master's record shows that the master, which has no marker,
// has not voted in this era. Either it has been in quarantine since an earlier era, or it was empty
// when a proxy first saw it.
func (v Report) isUnusedByRecord() bool {
	r := v.Record
	return r.Valid && r.Value.RunID == v.RunID && (r.Value.Reason == string(Joining) || r.Value.Reason == string(Empty))
}

// isUnusedInEra reports whether a master cannot have voted in this era, because it still has its
// marker of the former era, and has not restarted since.
func (e *eraTracker) isUnusedInEra(claim eraClaim) bool {
	return claim.sameRun && (e.positionOf(claim) == positionFormer || claim.wasMember && claim.Era == e.formerEra)
}

// noteMajority records that a majority of the masters voted in this era.
func (e *eraTracker) noteMajority() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.majorityVoted = true
}

// mayHaveHadMajority reports whether a majority of the masters may have voted in this era at some
// time. isUnknown reports whether a master counts although its last report shows no vote, or
// although this proxy has not checked it yet. Another proxy may have let such a master vote.
func (e *eraTracker) mayHaveHadMajority(isUnknown func(i int, checked bool) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	voted := 0
	for i := range e.names {
		if e.mayHaveVoted[i] || isUnknown(i, e.checkedMasters[i]) {
			voted++
		}
	}
	return e.majorityVoted || voted >= vote.Majority(len(e.names))
}

// determineEra sets the present era to the era that a majority of the masters states. Fewer masters
// suffice if every marker states an era of this set, without a seal. In addition, all masters must
// have been checked, or all markers must state one era and their masters must include a member of
// every majority. The latest stated era counts, because masters that were unreachable state an
// earlier era. settled is set if the call determined the era.
func (e *eraTracker) determineEra(now time.Time) (settled bool) {
	if e.ownEraKnown {
		return false
	}
	counts := e.statedEras()
	era, n := mostStatedEra(counts)
	if n < vote.Majority(len(e.names)) {
		stated := 0
		for candidate, n := range counts {
			if stated += n; candidate.Number > era.Number {
				era = candidate
			}
		}
		allChecked := len(e.checkedMasters) == len(e.names)
		enough := allChecked && stated > 0 || len(counts) == 1 && stated >= vote.ReadQuorum(len(e.names))
		if stated < len(e.claims) || !enough {
			return false
		}
	}
	e.ownEraKnown, e.ownEra = true, era
	if era.Number > 0 {
		e.ownEraSince = now
	}
	if e.reconfiguration != nil && e.reconfiguration.Era.Number < era.Number {
		e.reconfiguration = nil // the reconfiguration led to the present era, or to an earlier one
	}
	return true
}

// statedEras counts, for each era of this set, the masters that state it without a seal.
func (e *eraTracker) statedEras() map[reconfig.Era]int {
	counts := map[reconfig.Era]int{}
	for _, s := range e.claims {
		if s.Seal.IsNone() && s.Era.HasMasters(e.names) {
			counts[s.Era]++
		}
	}
	return counts
}

// mostStatedEra returns the era that most masters state, the latest one if several tie.
func mostStatedEra(counts map[reconfig.Era]int) (era reconfig.Era, masters int) {
	for candidate, n := range counts {
		if n > masters || n == masters && candidate.Number > era.Number {
			era, masters = candidate, n
		}
	}
	return era, masters
}

// latestRecordedEra returns the latest era of this set that a quarantine record states. Of several
// eras with one number, all proxies choose the same.
func (e *eraTracker) latestRecordedEra() (latest reconfig.Era) {
	for _, era := range e.recordedEras {
		later := cmp.Or(cmp.Compare(era.Number, latest.Number), strings.Compare(era.String(), latest.String())) > 0
		if later && era.HasMasters(e.names) {
			latest = era
		}
	}
	return latest
}

// position returns the position of the marker that a master reported last, or positionOwn if it
// reported none.
func (e *eraTracker) position(i int) eraPosition {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, marked := e.claims[i]
	if !marked {
		return positionOwn
	}
	return e.positionOf(s)
}

// hasPendingClaim reports whether a master claims that the era has ended, and the claim is not
// refuted. Meanwhile, the guard admits a master only after a catch-up from masters that vote.
func (e *eraTracker) hasPendingClaim() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.claims {
		if e.positionOf(s) == positionEnded && !e.refutedNonces[s.Nonce] {
			return true
		}
	}
	return false
}

// isRefuted reports whether a majority contradicted a master's claim.
func (e *eraTracker) isRefuted(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, marked := e.claims[i]
	return marked && e.refutedNonces[s.Nonce]
}

// nextCheckDelay returns the time until the next check of a master that votes. It is short if a
// decision on a change may be near.
func (e *eraTracker) nextCheckDelay(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ownEraKnown && e.ownEra.Place.Moves() || now.Sub(e.lastNewBallot) < changeWindow {
		return shortPause
	}
	return Heartbeat
}

// changeWindow is the time after a ballot in which masters are checked every shortPause, because a
// decision may follow.
const changeWindow = 3 * Heartbeat

// locationSeparator precedes the future location of the locks in a ballot that announces a move.
const locationSeparator = "~"

// statedEra returns the present era if it is known, else the era that most masters state. If neither
// this proxy nor a marker states an era, isMarked is false, and the era is the latest one that a
// quarantine record states.
func (e *eraTracker) statedEra() (era reconfig.Era, isMarked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ownEraKnown {
		return e.ownEra, true
	}
	era, masters := mostStatedEra(e.statedEras())
	if masters == 0 {
		return e.latestRecordedEra(), false
	}
	return era, true
}

// othersAreLater reports whether quarantine records state a later era than this one, of other
// masters: this proxy may have a former list of masters.
func (e *eraTracker) othersAreLater(era reconfig.Era) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	others := 0
	for _, recorded := range e.recordedEras {
		if recorded.Number > era.Number && !recorded.HasMasters(e.names) {
			others++
		}
	}
	return others >= witnessQuorum(len(e.names))
}

// adoptEra makes an era the present era, unless the present era is known already. It returns the
// present era.
func (e *eraTracker) adoptEra(era reconfig.Era) reconfig.Era {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ownEraKnown {
		e.ownEraKnown, e.ownEra = true, era
	}
	return e.ownEra
}

// isOwn reports whether a quarantine record is of the present era, or that era is unknown. Otherwise
// the claim in the record to have all data does not count.
func (e *eraTracker) isOwn(r marker.Record) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.ownEraKnown || r.IsOfEra(e.ownEra)
}

// withEra returns a new quarantine record that states the present era, or that of the master's
// former record while the present era is unknown.
func (e *eraTracker) withEra(r, former marker.Record) marker.Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ownEraKnown {
		return r.WithEraOf(former)
	}
	r.Nonce = marker.NewRecordNonce(e.ownEra)
	return r
}

// showsMasters reports whether the era shows which masters belong to it.
func (e *eraTracker) showsMasters() bool {
	era, _ := e.statedEra()
	return era.Number > 0
}

// showsLocation reports whether the era shows the location of the locks.
func (e *eraTracker) showsLocation() bool {
	era, _ := e.statedEra()
	return era.Place != location.Undecided
}

// age returns how long this proxy has known that the era follows an earlier one. During that time
// the earlier era granted nothing. If the era follows none, age returns the longest duration.
func (e *eraTracker) age(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ownEraSince.IsZero() {
		return 1<<63 - 1
	}
	return now.Sub(e.ownEraSince)
}

// formerSize returns the size of the previous set, as most of its masters state it, or zero if
// unknown.
func (e *eraTracker) formerSize() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts, size := map[int]int{}, 0
	for report := range e.sizeReports {
		if counts[report.size]++; counts[report.size] > counts[size] || counts[report.size] == counts[size] && report.size > size {
			size = report.size
		}
	}
	return size
}

// isCredible reports whether the seal of the marker with this nonce counts.
func (e *eraTracker) isCredible(nonce string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.credibleNonces[nonce]
}

// moveLease holds a master's report about the proxy that moves the locks.
type moveLease struct {
	// lastAsked is the time at which this proxy last asked the master, lastRenewed the time at
	// which the master last named a proxy that moves the locks.
	lastAsked, lastRenewed time.Time
}
