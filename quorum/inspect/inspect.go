// Package inspect looks at masters without taking part in their votes: what an operator is told of
// them, and how the settings of their proxies are replaced. Nothing of it is on the way of a lock.
package inspect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/feed"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/messages"
	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/vote"
)

// Finding is what Masters saw of one master.
type Finding struct {
	// Name is its address, without credentials.
	Name string
	// Err is why it cannot be used: it could not be asked, and then nothing more is known, or takes
	// no write.
	Err error
	// Version, Role and Policy are its redis_version, role and maxmemory_policy.
	Version, Role, Policy string
	// Appendfsync is its appendfsync setting, "off" where it writes no append-only
	// file, or empty where it will not say.
	Appendfsync string
	// Uptime is how long the server has been running, in whole seconds.
	Uptime time.Duration
	// Marker is what proxies have found and left on it: "votes", "unmarked" (by no proxy
	// so far), or why its votes would not count; a quarantine has lasted for Since.
	Marker string
	Since  time.Duration
	// Quarantine is why it is in quarantine and for how long, or nil; see Quarantines.
	Quarantine *guard.QuarantineError
	// Votes is set where a proxy that starts now would count its votes; New where no proxy
	// has used it since it was empty, so that a fresh start, or Vouch, would let it vote.
	Votes, New bool
	// LongestTTL is the longest in use that it knows of; zero: none.
	LongestTTL time.Duration
	// Refusal is why it takes no write, as far as it can be tried, or nil. Only Server knows it.
	Refusal error
	// Locks are those that it holds. Only Survey counts them.
	Locks guard.Locks
	// RoundTrip is the shortest of a few.
	RoundTrip time.Duration
	// Unsafe are reasons why a lock there cannot be relied on; Amiss is what proxies have
	// differently that should be alike; Weak are reasons why the master is less than it could
	// be.
	Unsafe, Amiss, Weak []string
	// Differs is which settings the proxies have otherwise that it votes for; see CompareSettings.
	Differs string

	runID string
	// databases are those that hold keys, hasDatabases is how many there are; 0: it does not say.
	databases    []int
	hasDatabases int
	report       *guard.Report
}

// Feeds are what a proxy has masters report, for which it needs rights besides those that locks
// need.
type Feeds struct {
	// Waiting: of changes, for clients that wait.
	Waiting bool
	// Messages: of messages, between proxies with this prefix.
	Messages bool
	Prefix   string
}

// Masters connects to each master by its URL and returns what is unsafe about it, and which rights
// are missing for feeds. Each may take as long as timeout for each answer; secure is Options.TLS.
func Masters(ctx context.Context, urls []string, timeout time.Duration, secure func(*tls.Config), feeds Feeds) []Finding {
	findings := make([]Finding, len(urls))
	var wg sync.WaitGroup
	for i, u := range urls {
		wg.Go(func() { findings[i] = inspect(ctx, u, timeout, secure, feeds) })
	}
	wg.Wait()
	sameServer(findings)
	return findings
}

// Survey is Masters, and counts the locks on each master.
func Survey(ctx context.Context, urls []string, timeout time.Duration, secure func(*tls.Config)) []Finding {
	findings := Masters(ctx, urls, timeout, secure, Feeds{})
	var wg sync.WaitGroup
	for i, u := range urls {
		if findings[i].Err == nil {
			wg.Go(func() { findings[i].countLocks(ctx, u, timeout, secure) })
		}
	}
	wg.Wait()
	return findings
}

func (f *Finding) countLocks(ctx context.Context, url string, timeout time.Duration, secure func(*tls.Config)) {
	t, err := master.NewTransport(url, timeout, secure)
	if err == nil {
		defer t.Close()
		f.Locks, err = guard.LocksOn(ctx, t, f.databases)
	}
	if err != nil {
		f.Err = errors.New(findingText(err))
	}
}

func inspect(ctx context.Context, url string, timeout time.Duration, secure func(*tls.Config), feeds Feeds) Finding {
	f := Finding{Name: master.NameIn(url)}
	t, err := master.NewTransport(url, timeout, secure)
	if err != nil {
		f.Err = err
		return f
	}
	defer t.Close()
	if f.RoundTrip, err = t.Probe(ctx); err != nil {
		f.Err = errors.New(findingText(err))
		return f
	}
	f.RoundTrip = f.RoundTrip.Round(time.Microsecond)
	v, err := t.Examine(ctx)
	if err != nil {
		f.Err = errors.New(findingText(err))
		return f
	}
	f.judge(v)
	if v.Refusal == nil { // or scripts fail, too
		_, v.Refusal = t.Run(ctx, script.Marked)
	}
	if v.Refusal != nil {
		f.Err = errors.New(findingText(v.Refusal))
	}
	f.report = &v
	if answer, err := t.Do(ctx, "CONFIG", "GET", "databases"); err == nil {
		f.hasDatabases = databasesIn(answer)
	}
	f.tryFeeds(ctx, t, timeout, feeds)
	return f
}

// Quarantines finds out for how long masters are in quarantine at the most, where maxTTL is that of
// the proxies.
func Quarantines(findings []Finding, maxTTL time.Duration) {
	for i, q := range guard.Quarantines(visitsOf(findings), maxTTL) {
		findings[i].Quarantine = q
	}
}

// IsWatched reports whether a proxy runs on the master, without which no quarantine ends.
func (f Finding) IsWatched() bool { return f.report != nil && len(f.report.Proxies) > 0 }

// CompareSettings finds the masters that would not vote for a proxy with these (Options.Settings),
// or for one with these masters.
func CompareSettings(findings []Finding, settings string) {
	for i, differs := range guard.Differences(settings, visitsOf(findings)) {
		if f := &findings[i]; differs != "" {
			f.Differs, f.Votes = differs, false
			f.Marker, f.Since, f.Quarantine = guard.OtherRules.Sentence(1), 0, nil
			f.Amiss = append(f.Amiss, differs)
		}
	}
}

// PlacedOn returns where the locks are by the markers of a majority of these masters. The place is
// undecided if they were never moved.
func PlacedOn(findings []Finding) place.Said {
	says := map[place.At]int{}
	for _, f := range findings {
		if f.report == nil || !f.report.Marker.Valid || !f.report.Marker.Value.Seal.IsNone() {
			continue
		}
		at := f.report.Marker.Value.Era.At()
		if says[at]++; says[at] >= vote.Majority(len(findings)) {
			return place.Said{At: at, Known: true, By: Names(findings)}
		}
	}
	return place.Said{By: Names(findings)}
}

// Names are the addresses of the masters.
func Names(findings []Finding) (names []string) {
	for _, f := range findings {
		names = append(names, f.Name)
	}
	return names
}

// visitsOf returns the findings as visits.
func visitsOf(findings []Finding) []guard.Visit {
	visits := make([]guard.Visit, len(findings))
	for i, f := range findings {
		visits[i] = guard.Visit{Name: f.Name, Report: f.report}
	}
	return visits
}

// Unlike returns how many proxies are running on these masters that have other settings
// (Options.Settings), or another number of masters.
func Unlike(findings []Finding, settings string) int {
	return guard.Unlike(settings, visitsOf(findings))
}

// tryFeeds tries what the feeds need. Of a master that does not answer nothing is reported.
func (f *Finding) tryFeeds(ctx context.Context, t master.Transport, timeout time.Duration, feeds Feeds) {
	try := func(needs []feed.Need, forWhat string) {
		conn, err := t.Watch(ctx, 0)
		if err != nil {
			return
		}
		defer conn.Close()
		limits := resp.Limits{Line: 16 << 10, Bulk: 16 << 10, Elements: 64, Depth: 4, Total: 64 << 10}
		if lacking, err := feed.Lacking(conn, resp.NewReader3(conn, limits), timeout, needs); err == nil && len(lacking) > 0 {
			f.Weak = append(f.Weak, "its user lacks "+strings.Join(lacking, " ")+" for "+forWhat)
		}
	}
	if feeds.Waiting {
		try(waitingNeeds, "clients that wait: they poll")
	}
	if feeds.Messages {
		try(messagesNeeds(messages.Channel+feeds.Prefix), "messages: SUBSCRIBE and PUBLISH may fail")
	}
}

// waitingNeeds are what a watch sends (package wake), of a key that exists or not.
var waitingNeeds = []feed.Need{
	{Words: []string{"PING"}, Right: "+ping"},
	{Words: []string{"PTTL", script.OwnPrefix + "marker"}, Right: "+pttl"},
	{Words: []string{"GETRANGE", script.OwnPrefix + "marker", "0", "0"}, Right: "+getrange"},
	{Words: []string{"CLIENT", "TRACKING", "ON"}, Right: "+client|tracking"},
}

// messagesNeeds are what is sent for messages (package messages). An empty message is none, and
// nobody gets it.
func messagesNeeds(channel string) []feed.Need {
	rule := "&" + messages.Channel + "*"
	return []feed.Need{
		{Words: []string{"PING"}, Right: "+ping"},
		{Words: []string{"PUBLISH", channel, ""}, Right: "+publish", Channel: rule},
		{Words: []string{"SUBSCRIBE", channel}, Right: "+subscribe", Channel: rule},
	}
}

// judge weighs the master's report.
func (f *Finding) judge(v guard.Report) {
	f.Version, f.Role, f.Policy, f.Appendfsync, f.Uptime = v.Version, v.Role, v.Policy, v.Appendfsync, v.Uptime
	f.runID, f.databases = v.RunID, v.Databases
	f.Votes, f.New, f.LongestTTL = v.Votes(), v.IsNew(), v.Longest
	f.Marker, f.Since = v.State()
	if why := v.Unfit(); why != "" {
		f.Unsafe = append(f.Unsafe, why)
	}
	if !v.Durable() {
		f.Weak = append(f.Weak, "forgets locks when it restarts: without appendonly yes and appendfsync always")
	}
	f.Amiss = append(f.Amiss, v.Differences...)
	if v.RunID == guard.NotReported {
		f.Weak = append(f.Weak, "does not show its run_id: a restart from older data goes unnoticed")
	}
}

// sameServer marks masters that are one server under two addresses.
func sameServer(findings []Finding) {
	seen := map[string]string{}
	for i := range findings {
		f := &findings[i]
		if f.runID == "" || f.runID == guard.NotReported {
			continue
		}
		if other, twice := seen[f.runID]; twice {
			f.Unsafe = append(f.Unsafe, guard.Twin+other)
		}
		seen[f.runID] = f.Name
	}
}

// Server connects to a Redis that is no master, such as the upstream, and returns what it reports
// of itself. It changes nothing there; the key is for a trial write. One that demands a login, and
// gets none or none that may ask, has a Finding without anything but its name and round trip. It
// may take as long as timeout for each answer; secure is Options.TLS.
func Server(ctx context.Context, url, key string, timeout time.Duration, secure func(*tls.Config)) Finding {
	f := Finding{Name: master.NameIn(url)}
	server, err := master.NewServer(url, timeout, secure)
	if err != nil {
		f.Err = err
		return f
	}
	defer server.Close()
	began := time.Now()
	if _, err := server.Do(ctx, "PING"); err != nil && !isDenied(err) {
		f.Err = errors.New(cmp.Or(server.Advice(ctx, err), findingText(err)))
		return f
	}
	f.RoundTrip = time.Since(began).Round(time.Microsecond)
	if info, err := server.Do(ctx, "INFO"); err == nil {
		text, _ := info.(string)
		v := guard.ReadInfo(text)
		f.Version, f.Role, f.Policy, f.Uptime, f.runID = v.Version, v.Role, v.Policy, v.Uptime, v.RunID
	}
	if answer, err := server.Do(ctx, "CONFIG", "GET", "databases"); err == nil {
		f.hasDatabases = databasesIn(answer)
	}
	ctx, cancel := context.WithTimeout(ctx, availability.TrialTime)
	defer cancel()
	_, err = server.Do(ctx, availability.Trial(key)...)
	if refusal := availability.Refusal(err, server.LogsIn()); refusal != nil {
		f.Refusal = errors.New(findingText(refusal))
	}
	return f
}

// IsSameServer reports whether both are the same Redis, by whatever addresses they were
// reached; false also where they do not report it.
func (f Finding) IsSameServer(other Finding) bool {
	return f.runID != "" && f.runID != guard.NotReported && f.runID == other.runID
}

// isDenied reports whether a Redis answered that one must log in, or may not do that.
func isDenied(err error) bool {
	return strings.HasPrefix(err.Error(), "NOAUTH ") || strings.HasPrefix(err.Error(), "NOPERM ")
}

// findingText is, for an operator, why a server could not be asked.
func findingText(err error) string {
	var lookup *net.DNSError
	var malformed *resp.ProtocolError
	text := err.Error()
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "no such host"
	case errors.As(err, &lookup):
		return "its name cannot be looked up: " + lookup.Err
	case strings.HasPrefix(text, "WRONGPASS "):
		return "wrong password: " + text
	case strings.HasPrefix(text, "NOAUTH "):
		return "no password is given, and it demands one: " + text
	case strings.HasPrefix(text, "NOPERM "):
		return "its user may not do what a lock needs: " + text
	case errors.As(err, &malformed):
		return "it is not a Redis: " + text
	case strings.HasPrefix(text, "redis: "):
		return "it is not a Redis: " + strings.TrimPrefix(text, "redis: ")
	default:
		return master.CauseText(err)
	}
}
