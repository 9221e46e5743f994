package status

import (
	"errors"
	"fmt"
	"math"
	"time"

	"redlock-proxy/quorum"
)

// version is the version of the JSON format, which docs/status.md describes.
const version = 1

// statusView holds the response to /status/v1.
type statusView struct {
	Version  int           `json:"version"`
	Now      int64         `json:"now"` // like all times, ms since 1970
	Proxy    proxyView     `json:"proxy"`
	Upstream *upstreamView `json:"upstream"` // null without an upstream
	Quorum   quorumView    `json:"quorum"`
	Masters  []masterView  `json:"masters"`
	Samples  samplesView   `json:"samples"`
	Events   eventsView    `json:"events"`
	// Locks reports whether /status/v1/locks lists locks.
	Locks bool `json:"locks"`
}

// Proxy holds the values of the proxy itself that the page shows.
type Proxy struct {
	Version, Listen, State                        string
	Clients, ClientsLimit, Waiters, DetectedLocks int64
	// DirectLocks counts the lock keys that the proxy noticed at the upstream while the locks were
	// on the masters.
	DirectLocks int64
}

type proxyView struct {
	Version        string `json:"version"`
	Started        int64  `json:"started"`
	Listen         string `json:"listen"`
	State          string `json:"state"` // starting, serving or draining
	Clients        int64  `json:"clients"`
	ClientsLimit   int64  `json:"clients_limit"`
	Waiters        int64  `json:"waiters"`
	UncoveredLocks int64  `json:"uncovered_locks"`
	// LockStorage is upstream, masters, moving-to-masters, moving-to-upstream or unknown. It is
	// empty if the locks cannot be moved.
	LockStorage string `json:"locks_at"`
	DirectLocks int64  `json:"stray_locks"`
}

type upstreamView struct {
	Name  string     `json:"name"`
	Up    bool       `json:"up"`
	Cause string     `json:"cause"`
	Nodes []nodeView `json:"nodes"` // empty unless the upstream is a cluster
}

// Node is the state of a node of the cluster that is the upstream.
type Node struct {
	Address, Role string
	// Listen is the proxy's port for the node. Clients is the number of clients at this port, Slots
	// the number of slots that the node serves.
	Listen, Clients, Slots int
	// Err is the reason why the node is down; nil if it is up.
	Err error
}

type nodeView struct {
	Listen  int    `json:"listen"`
	Name    string `json:"name"`
	Role    string `json:"role"` // master or replica
	Up      bool   `json:"up"`
	Slots   int    `json:"slots"`
	Clients int    `json:"clients"`
	Cause   string `json:"cause"`
}

func newUpstreamView(name string, err error, nodes []Node) *upstreamView {
	v := &upstreamView{Name: makePrintable(name), Up: err == nil, Cause: causeText(err), Nodes: []nodeView{}}
	for _, n := range nodes {
		v.Nodes = append(v.Nodes, nodeView{
			Listen: n.Listen, Name: makePrintable(n.Address), Role: n.Role, Up: n.Err == nil, Slots: n.Slots, Clients: n.Clients,
			Cause: causeText(n.Err),
		})
	}
	return v
}

// causeText returns the text of an error, or "" for nil.
func causeText(err error) string {
	if err == nil {
		return ""
	}
	return makePrintable(err.Error())
}

type quorumView struct {
	// OK reports whether locks are available. If not, Cause is the reason. Paused reports whether
	// commands wait for the end of a planned step.
	OK       bool   `json:"ok"`
	Paused   bool   `json:"paused"`
	Cause    string `json:"cause"`
	Voting   int    `json:"voting"`
	Masters  int    `json:"masters"`
	Majority int    `json:"majority"`
}

type masterView struct {
	Name  string `json:"name"`
	Role  string `json:"role"`  // master, or replica, which cannot vote
	State string `json:"state"` // voting, quarantine, unfit, down
	Votes bool   `json:"votes"`
	Since int64  `json:"since"`
	Cause string `json:"cause"`
	// LatencyUS is the mean round trip of the last seconds. If LatencyIsOfProbe is set, LatencyUS
	// is the round trip of the probe that brought the master up.
	LatencyUS        *float64        `json:"latency_us"`
	LatencyIsOfProbe bool            `json:"latency_of_probe"`
	ClockOffsetMS    *float64        `json:"clock_offset_ms"`
	Quarantine       *quarantineView `json:"quarantine"`
	RemovalsPending  int             `json:"removals_owed"`
	CatchUps         int64           `json:"catch_ups"`
}

type quarantineView struct {
	Reason string `json:"reason"`
	Text   string `json:"text"`
	// LeftMS is the time until the quarantine ends at the latest, or null if that is unknown.
	LeftMS *int64 `json:"left_ms"`
}

// samplesView holds the recent samples as columns. A value without data is null.
type samplesView struct {
	IntervalMS int64      `json:"every_ms"`
	MaxCount   int        `json:"keep"`
	Count      int        `json:"count"` // samples since the start
	Granted    []*float64 `json:"granted"`
	Refused    []*float64 `json:"refused"`
	NoQuorum   []*float64 `json:"no_quorum"`
	Relayed    []*float64 `json:"relayed"`
	P50        []*float64 `json:"lock_p50_ms"`
	P99        []*float64 `json:"lock_p99_ms"`
	// RoundTrips has a column for each master: mean round trips in ms.
	RoundTrips [][]*float64 `json:"master_ms"`
}

type eventsView struct {
	Count int         `json:"count"`
	List  []eventView `json:"list"`
}

type eventView struct {
	At      int64  `json:"at"`
	Badge   string `json:"what"`
	Tone    string `json:"mood"` // good, bad or note
	Subject string `json:"about"`
	Detail  string `json:"detail"`
}

// locksView holds the response to /status/v1/locks.
type locksView struct {
	Version int        `json:"version"`
	At      int64      `json:"at"` // time of the answer of the masters, or 0
	DB      int        `json:"db"`
	Match   string     `json:"match"`
	HasMore bool       `json:"more"`
	Error   string     `json:"error"`
	Locks   []lockView `json:"locks"`
}

type lockView struct {
	Key   string `json:"key"`
	State string `json:"state"`
	// LeftMS is -1 for a lock without a TTL, and null if the remaining time is unknown.
	LeftMS  *int64     `json:"left_ms"`
	Votes   []voteView `json:"votes"`
	Waiters int        `json:"waiters"`
	Since   *int64     `json:"since"`
	Addr    string     `json:"addr"`
	Name    string     `json:"name"`
	Kept    bool       `json:"kept"`
	// Shared describes how several clients hold the lock; empty for an exclusive lock.
	Shared string `json:"shared"`
}

type voteView struct {
	Server string `json:"server"`
	State  string `json:"says"`
}

// newMasterView returns the view of a master. roundTrip is the master's recent mean round trip in
// seconds, or NaN.
func newMasterView(m quorum.MasterStatus, roundTrip float64, now time.Time) masterView {
	v := masterView{
		Name: makePrintable(m.Name), Role: roleOf(m), State: m.State.String(), Votes: m.State == quorum.Voting,
		Since: m.Since.UnixMilli(), Cause: makePrintable(m.Cause()), RemovalsPending: m.RemovalsPending, CatchUps: m.CatchUps,
	}
	if m.Err == nil {
		v.LatencyUS = jsonNumber(roundTrip*1e6, 0)
		if v.LatencyUS == nil && m.RoundTrip > 0 {
			v.LatencyUS, v.LatencyIsOfProbe = jsonNumber(float64(m.RoundTrip.Microseconds()), 0), true
		}
	}
	if m.ClockKnown && m.Err == nil {
		v.ClockOffsetMS = jsonNumber(m.ClockOffset.Seconds()*1e3, 1)
	}
	if q := m.Quarantine; q != nil {
		v.Quarantine = &quarantineView{Reason: makePrintable(q.Reason()), Text: makePrintable(q.Error())}
		if !q.ReadyAt.IsZero() {
			left := max(0, q.ReadyAt.Sub(now).Milliseconds())
			v.Quarantine.LeftMS = &left
		}
	}
	return v
}

// roleOf returns the role of a server: master or replica.
func roleOf(m quorum.MasterStatus) string {
	var unfitErr *quorum.UnfitError
	if errors.As(m.Err, &unfitErr) && unfitErr.IsReplica() {
		return "replica"
	}
	return "master"
}

// newSamplesView turns samples into columns.
func newSamplesView(samples []sample, count, masters int) samplesView {
	v := samplesView{
		IntervalMS: sampleInterval.Milliseconds(), MaxCount: maxSamples, Count: count, RoundTrips: make([][]*float64, masters),
	}
	for _, column := range []*[]*float64{&v.Granted, &v.Refused, &v.NoQuorum, &v.Relayed, &v.P50, &v.P99} {
		*column = make([]*float64, 0, len(samples))
	}
	for i := range v.RoundTrips {
		v.RoundTrips[i] = make([]*float64, 0, len(samples))
	}
	for _, s := range samples {
		v.Granted = append(v.Granted, jsonNumber(s.granted, 1))
		v.Refused = append(v.Refused, jsonNumber(s.refused, 1))
		v.NoQuorum = append(v.NoQuorum, jsonNumber(s.noQuorum, 1))
		v.Relayed = append(v.Relayed, jsonNumber(s.relayedCommands, 1))
		v.P50 = append(v.P50, jsonNumber(s.p50*1e3, 3))
		v.P99 = append(v.P99, jsonNumber(s.p99*1e3, 3))
		for i := range v.RoundTrips {
			mean := math.NaN()
			if i < len(s.roundTrips) {
				mean = s.roundTrips[i].Mean()
			}
			v.RoundTrips[i] = append(v.RoundTrips[i], jsonNumber(mean*1e3, 3))
		}
	}
	return v
}

// newEventsView returns the view of events. Unless showKeys is set, it omits the subject and
// details of events that name keys.
func newEventsView(all []event, count int, showKeys bool) eventsView {
	v := eventsView{Count: count, List: make([]eventView, 0, len(all))}
	for _, e := range all {
		event := eventView{
			At: e.at.UnixMilli(), Badge: e.kind.badge, Tone: e.kind.tone, Subject: e.subject, Detail: e.detail,
		}
		if e.namesKeys && !showKeys {
			event.Subject, event.Detail = "", ""
		}
		v.List = append(v.List, event)
	}
	return v
}

func newLocksView(f listing) locksView {
	v := locksView{
		Version: version, DB: f.db, Match: makePrintable(f.match), HasMore: f.hasMore,
		Locks: make([]lockView, 0, len(f.locks)),
	}
	if !f.at.IsZero() {
		v.At = f.at.UnixMilli()
	}
	if f.err != nil {
		v.Error = makePrintable(f.err.Error())
	}
	for _, l := range f.locks {
		v.Locks = append(v.Locks, newLockView(l))
	}
	return v
}

// describeHolders describes how several clients hold a lock; empty for an exclusive lock.
func describeHolders(l Lock) string {
	switch {
	case l.Slots == 0:
		return ""
	case l.Slots == quorum.Unlimited && l.Holders == 1:
		return "shared, 1 holder"
	case l.Slots == quorum.Unlimited:
		return fmt.Sprintf("shared, %d holders", l.Holders)
	default:
		return fmt.Sprintf("%d of %d slots", l.Holders, l.Slots)
	}
}

func newLockView(l Lock) lockView {
	v := lockView{
		Key: makePrintable(l.Key), State: l.State, Waiters: l.Waiters, Addr: makePrintable(l.Addr), Name: makePrintable(l.Name), Kept: l.Kept,
		Shared: describeHolders(l), Votes: make([]voteView, 0, len(l.Votes)),
	}
	left := l.TimeLeft.Milliseconds()
	switch {
	case l.TimeLeft == quorum.NoExpiry:
		left = -1
		v.LeftMS = &left
	case l.TimeLeft > 0:
		v.LeftMS = &left
	}
	if !l.GrantedAt.IsZero() {
		since := l.GrantedAt.UnixMilli()
		v.Since = &since
	}
	for _, s := range l.Votes {
		v.Votes = append(v.Votes, voteView{Server: makePrintable(s.Server), State: makePrintable(s.State)})
	}
	return v
}
