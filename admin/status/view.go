package status

import (
	"errors"
	"math"
	"time"

	"redlock-proxy/quorum"
)

// version is that of the shapes in JSON. docs/status.md describes them.
const version = 1

// view is the answer to /status/v1.
type view struct {
	Version  int          `json:"version"`
	Now      int64        `json:"now"` // as all times, ms since 1970
	Proxy    proxyView    `json:"proxy"`
	Upstream *serverView  `json:"upstream"` // null: none is configured
	Quorum   quorumView   `json:"quorum"`
	Masters  []masterView `json:"masters"`
	Samples  samplesView  `json:"samples"`
	Events   eventsView   `json:"events"`
	// Locks is whether /status/v1/locks tells them.
	Locks bool `json:"locks"`
}

// Proxy is what is shown of the proxy itself.
type Proxy struct {
	Version, Listen, State                    string
	Clients, ClientsLimit, Waiters, Uncovered int64
	// Strays are locks at the upstream while the locks are at the masters.
	Strays int64
}

type proxyView struct {
	Version      string `json:"version"`
	Started      int64  `json:"started"`
	Listen       string `json:"listen"`
	State        string `json:"state"` // starting, serving or draining
	Clients      int64  `json:"clients"`
	ClientsLimit int64  `json:"clients_limit"`
	Waiters      int64  `json:"waiters"`
	Uncovered    int64  `json:"uncovered_locks"`
	LocksAt      string `json:"locks_at"` // upstream, masters, moving-to-masters, moving-to-upstream, unknown; empty: they cannot be moved
	Strays       int64  `json:"stray_locks"`
}

type serverView struct {
	Name  string `json:"name"`
	Up    bool   `json:"up"`
	Cause string `json:"cause"`
}

type quorumView struct {
	// OK is whether locks are available; else Cause says why not. Paused: commands wait for the end
	// of a planned step.
	OK       bool   `json:"ok"`
	Paused   bool   `json:"paused"`
	Cause    string `json:"cause"`
	Voting   int    `json:"voting"`
	Masters  int    `json:"masters"`
	Majority int    `json:"majority"`
}

type masterView struct {
	Name  string `json:"name"`
	Role  string `json:"role"`  // master, or replica (which is no good)
	State string `json:"state"` // voting, quarantine, unfit, down
	Votes bool   `json:"votes"`
	Since int64  `json:"since"`
	Cause string `json:"cause"`
	// LatencyUS is the mean round trip of the last seconds, or, where Probed is set, of the probe
	// that brought it up.
	LatencyUS  *float64        `json:"latency_us"`
	Probed     bool            `json:"latency_of_probe"`
	ClockMS    *float64        `json:"clock_offset_ms"`
	Quarantine *quarantineView `json:"quarantine"`
	Owed       int             `json:"removals_owed"`
	CatchUps   int64           `json:"catch_ups"`
}

type quarantineView struct {
	Reason string `json:"reason"`
	Text   string `json:"text"`
	// LeftMS is how long it lasts at the most, null where that is not known.
	LeftMS *int64 `json:"left_ms"`
}

// samplesView are columns, of which each has the last few values. A value is null where there was
// nothing.
type samplesView struct {
	EveryMS  int64      `json:"every_ms"`
	Keep     int        `json:"keep"`
	Count    int        `json:"count"` // since the start, up to the last one here
	Granted  []*float64 `json:"granted"`
	Refused  []*float64 `json:"refused"`
	NoQuorum []*float64 `json:"no_quorum"`
	Relayed  []*float64 `json:"relayed"`
	P50      []*float64 `json:"lock_p50_ms"`
	P99      []*float64 `json:"lock_p99_ms"`
	// Trips are the mean round trips of each master in ms.
	Trips [][]*float64 `json:"master_ms"`
}

type eventsView struct {
	Count int         `json:"count"`
	List  []eventView `json:"list"`
}

type eventView struct {
	At     int64  `json:"at"`
	What   string `json:"what"`
	Mood   string `json:"mood"` // good, bad or note
	About  string `json:"about"`
	Detail string `json:"detail"`
}

// locksView is the answer to /status/v1/locks.
type locksView struct {
	Version int        `json:"version"`
	At      int64      `json:"at"` // when the masters were asked; 0: not for these
	DB      int        `json:"db"`
	Match   string     `json:"match"`
	More    bool       `json:"more"`
	Error   string     `json:"error"`
	Locks   []lockView `json:"locks"`
}

type lockView struct {
	Key   string `json:"key"`
	State string `json:"state"`
	// LeftMS is -1 without an end, null where it is not known.
	LeftMS  *int64     `json:"left_ms"`
	Votes   []voteView `json:"votes"`
	Waiters int        `json:"waiters"`
	Since   *int64     `json:"since"`
	Addr    string     `json:"addr"`
	Name    string     `json:"name"`
}

type voteView struct {
	Server string `json:"server"`
	Says   string `json:"says"`
}

// viewMaster is one of the masters. roundTrip is the mean of its last batches in seconds, or NaN.
func viewMaster(m quorum.MasterStatus, roundTrip float64, now time.Time) masterView {
	v := masterView{
		Name: shown(m.Name), Role: roleOf(m), State: m.Standing.String(), Votes: m.Standing == quorum.Voting,
		Since: m.Since.UnixMilli(), Cause: shown(m.Cause()), Owed: m.Owed, CatchUps: m.CatchUps,
	}
	if m.Err == nil {
		v.LatencyUS = number(roundTrip*1e6, 0)
		if v.LatencyUS == nil && m.RoundTrip > 0 {
			v.LatencyUS, v.Probed = number(float64(m.RoundTrip.Microseconds()), 0), true
		}
	}
	if m.ClockKnown && m.Err == nil {
		v.ClockMS = number(m.ClockOffset.Seconds()*1e3, 1)
	}
	if q := m.Quarantine; q != nil {
		v.Quarantine = &quarantineView{Reason: shown(q.Reason()), Text: shown(q.Error())}
		if !q.Ready.IsZero() {
			left := max(0, q.Ready.Sub(now).Milliseconds())
			v.Quarantine.LeftMS = &left
		}
	}
	return v
}

// roleOf is what a server is to the locks.
func roleOf(m quorum.MasterStatus) string {
	var unfit *quorum.UnfitError
	if errors.As(m.Err, &unfit) && unfit.IsReplica() {
		return "replica"
	}
	return "master"
}

// viewSamples makes columns of samples.
func viewSamples(all []sample, count, masters int) samplesView {
	v := samplesView{EveryMS: samplePause.Milliseconds(), Keep: maxSamples, Count: count, Trips: make([][]*float64, masters)}
	for _, column := range []*[]*float64{&v.Granted, &v.Refused, &v.NoQuorum, &v.Relayed, &v.P50, &v.P99} {
		*column = make([]*float64, 0, len(all))
	}
	for i := range v.Trips {
		v.Trips[i] = make([]*float64, 0, len(all))
	}
	for _, s := range all {
		v.Granted = append(v.Granted, number(s.granted, 1))
		v.Refused = append(v.Refused, number(s.refused, 1))
		v.NoQuorum = append(v.NoQuorum, number(s.noQuorum, 1))
		v.Relayed = append(v.Relayed, number(s.relayed, 1))
		v.P50 = append(v.P50, number(s.p50*1e3, 3))
		v.P99 = append(v.P99, number(s.p99*1e3, 3))
		for i := range v.Trips {
			mean := math.NaN()
			if i < len(s.trips) {
				mean = s.trips[i].Mean()
			}
			v.Trips[i] = append(v.Trips[i], number(mean*1e3, 3))
		}
	}
	return v
}

// viewEvents leaves out what may be shown only where keys may.
func viewEvents(all []event, count int, private bool) eventsView {
	v := eventsView{Count: count, List: make([]eventView, 0, len(all))}
	for _, e := range all {
		one := eventView{At: e.at.UnixMilli(), What: e.kind.what, Mood: e.kind.mood, About: e.about, Detail: e.detail}
		if e.private && !private {
			one.About, one.Detail = "", ""
		}
		v.List = append(v.List, one)
	}
	return v
}

func viewLocks(f finding) locksView {
	v := locksView{Version: version, DB: f.db, Match: shown(f.match), More: f.more, Locks: make([]lockView, 0, len(f.locks))}
	if !f.at.IsZero() {
		v.At = f.at.UnixMilli()
	}
	if f.err != nil {
		v.Error = shown(f.err.Error())
	}
	for _, l := range f.locks {
		v.Locks = append(v.Locks, viewLock(l))
	}
	return v
}

func viewLock(l Lock) lockView {
	v := lockView{
		Key: shown(l.Key), State: l.State, Waiters: l.Waiters, Addr: shown(l.Addr), Name: shown(l.Name),
		Votes: make([]voteView, 0, len(l.Votes)),
	}
	left := l.Left.Milliseconds()
	switch {
	case l.Left == quorum.Endless:
		left = -1
		v.LeftMS = &left
	case l.Left > 0:
		v.LeftMS = &left
	}
	if !l.Since.IsZero() {
		since := l.Since.UnixMilli()
		v.Since = &since
	}
	for _, s := range l.Votes {
		v.Votes = append(v.Votes, voteView{Server: shown(s.Server), Says: shown(s.Says)})
	}
	return v
}
