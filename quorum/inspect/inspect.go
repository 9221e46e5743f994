// Package inspect examines masters without taking part in their votes. It reports the state of the
// masters to operators, and replaces the settings that the masters require of proxies. No lock
// depends on this package.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/messages"
	"redlock-proxy/quorum/pushconn"
	"redlock-proxy/quorum/vote"
)

// Finding describes a master that ExamineMasters examined, or another server that ExamineServer
// examined.
type Finding struct {
	// Name is the server's address, without credentials.
	Name string
	// Err is the reason why the server cannot be used, or nil. The server may not have answered,
	// and then fields without an answer are empty. A master may also refuse writes.
	Err error
	// Version, Role and Policy are the server's redis_version, role and maxmemory_policy.
	Version, Role, Policy string
	// Appendfsync is the setting appendfsync, "off" if the server writes no append-only file, or
	// empty if the server does not report the setting.
	Appendfsync string
	// Uptime is the time for which the server has been running, in whole seconds.
	Uptime time.Duration
	// Marker describes the marker that proxies left on the master: "votes", "unmarked" (no proxy so
	// far), or the reason why the master's votes would not count. QuarantineElapsed is the duration
	// of a quarantine so far, or zero.
	Marker            string
	QuarantineElapsed time.Duration
	// Quarantine is the reason and the maximum remaining time of a quarantine, or nil. Only
	// SetQuarantines sets it.
	Quarantine *guard.QuarantineError
	// Votes is set if a proxy that starts now would count the master's votes. New is set if no
	// proxy has used the master since it was empty. Then a fresh start, or an operator's override,
	// would let the master vote.
	Votes, New bool
	// LongestTTL is the longest TTL in use that the master knows of, or zero.
	LongestTTL time.Duration
	// Refusal is the reason why the server refuses writes, as far as a trial shows, or nil. Only
	// ExamineServer sets it.
	Refusal error
	// Locks counts the locks on the master. Only Survey sets it.
	Locks guard.Locks
	// RoundTrip is the shortest of a few round trips to a master, or the only one to another
	// server.
	RoundTrip time.Duration
	// SafetyProblems holds reasons why a lock on the master cannot be relied on. SettingsProblems
	// lists settings that differ among proxies but must be equal. Weaknesses holds reasons why the
	// master is less reliable or capable than possible.
	SafetyProblems, SettingsProblems, Weaknesses []string
	// SettingsDifference describes how the settings of the master's proxies differ from the given
	// settings. See CompareSettings.
	SettingsDifference string

	runID string
	// databases holds the databases with keys. databaseCount is the number of databases, or 0 if
	// the server does not report it.
	databases     []int
	databaseCount int
	report        *guard.Report
}

// PushConnections selects the push connections (package pushconn) that a proxy needs. They need
// more rights on the masters than locks do.
type PushConnections struct {
	// ForWaiting selects reports of changes, for clients that wait.
	ForWaiting bool
	// ForMessages selects messages between proxies. Prefix is the prefix of the proxies' messages.
	ForMessages bool
	Prefix      string
}

// ExamineMasters connects to each master by its URL, and returns a finding for each. A finding
// contains the reasons not to rely on the master. It also contains the rights that the proxy's user
// lacks for the selected push connections.
func ExamineMasters(ctx context.Context, urls []string, access master.Access, selectedConns PushConnections) []Finding {
	findings := make([]Finding, len(urls))
	var wg sync.WaitGroup
	for i, u := range urls {
		wg.Go(func() { findings[i] = inspectMaster(ctx, u, access, selectedConns) })
	}
	wg.Wait()
	markSameServer(findings)
	return findings
}

// Survey does the same as ExamineMasters, and also counts the locks on each master.
func Survey(ctx context.Context, urls []string, access master.Access) []Finding {
	findings := ExamineMasters(ctx, urls, access, PushConnections{})
	var wg sync.WaitGroup
	for i, u := range urls {
		if findings[i].Err == nil {
			wg.Go(func() { findings[i].countLocks(ctx, u, access) })
		}
	}
	wg.Wait()
	return findings
}

func (f *Finding) countLocks(ctx context.Context, url string, access master.Access) {
	t, err := master.NewTransport(url, access)
	if err == nil {
		defer t.Close()
		f.Locks, err = guard.LocksOn(ctx, t, f.databases)
	}
	if err != nil {
		f.Err = errors.New(errorText(err))
	}
}

func inspectMaster(ctx context.Context, url string, access master.Access, selected PushConnections) Finding {
	f := Finding{Name: master.NameFromURL(url)}
	t, err := master.NewTransport(url, access)
	if err != nil {
		f.Err = err
		return f
	}
	defer t.Close()
	if f.RoundTrip, err = t.Probe(ctx); err != nil {
		f.Err = errors.New(errorText(err))
		return f
	}
	f.RoundTrip = f.RoundTrip.Round(time.Microsecond)
	v, err := t.Examine(ctx)
	if err != nil {
		f.Err = errors.New(errorText(err))
		return f
	}
	f.evaluate(v)
	if v.Refusal == nil { // else scripts also fail
		_, v.Refusal = t.Run(ctx, script.GetMarker)
	}
	if v.Refusal != nil {
		f.Err = errors.New(errorText(v.Refusal))
	}
	f.report = &v
	if reply, err := t.Do(ctx, "CONFIG", "GET", "databases"); err == nil {
		f.databaseCount = parseDatabases(reply)
	}
	f.tryPushConnections(ctx, t, access.Timeout, selected)
	return f
}

// SetQuarantines sets the maximum remaining quarantine of each master. maxTTL is the setting
// max-ttl of the proxies.
func SetQuarantines(findings []Finding, maxTTL time.Duration) {
	for i, q := range guard.Quarantines(inspectionsOf(findings), maxTTL) {
		findings[i].Quarantine = q
	}
}

// IsInUse reports whether a running proxy uses the master. Without such a proxy no quarantine
// ends.
func (f Finding) IsInUse() bool { return f.report != nil && len(f.report.Proxies) > 0 }

// CompareSettings changes the findings of masters that would not vote for a proxy with these
// settings (quorum.Options.Settings), or with these masters. It sets their Marker,
// SettingsDifference and SettingsProblems.
func CompareSettings(findings []Finding, settings string) {
	inspections := inspectionsOf(findings)
	for i, differs := range guard.Differences(settings, inspections) {
		f := &findings[i]
		if inspections[i].Joins(Names(findings)) {
			f.Marker = "not proved: " + guard.Joining.Sentence(1)
		}
		if differs != "" {
			f.SettingsDifference, f.Votes = differs, false
			f.Marker, f.QuarantineElapsed, f.Quarantine = guard.ReasonDifferentRules.Sentence(1), 0, nil
			f.SettingsProblems = append(f.SettingsProblems, differs)
		}
	}
}

// ReportedLocation returns the location of the locks, according to the markers of a majority of
// these masters. Known is false without such a majority. The place is undecided if the locks were
// never moved.
func ReportedLocation(findings []Finding) location.Report {
	counts := map[location.EraPlace]int{}
	for _, f := range findings {
		if f.report == nil || !f.report.Marker.Valid || !f.report.Marker.Value.Seal.IsNone() {
			continue
		}
		at := f.report.Marker.Value.Era.Location()
		if counts[at]++; counts[at] >= vote.Majority(len(findings)) {
			return location.Report{EraPlace: at, Known: true, Masters: Names(findings)}
		}
	}
	return location.Report{Masters: Names(findings)}
}

// AreChanging reports whether a majority of these masters no longer votes because its era has ended:
// the masters are being changed, or the locks moved.
func AreChanging(findings []Finding) bool {
	sealed := 0
	for _, f := range findings {
		if f.report != nil && f.report.Marker.Valid && !f.report.Marker.Value.Seal.IsNone() {
			sealed++
		}
	}
	return sealed >= vote.Majority(len(findings))
}

// Names returns the addresses of the masters.
func Names(findings []Finding) (names []string) {
	for _, f := range findings {
		names = append(names, f.Name)
	}
	return names
}

func inspectionsOf(findings []Finding) []guard.Inspection {
	inspections := make([]guard.Inspection, len(findings))
	for i, f := range findings {
		inspections[i] = guard.Inspection{Name: f.Name, Report: f.report}
	}
	return inspections
}

// CountProxies counts the running proxies, and the proxies that would lose votes if these settings
// replaced the current settings.
func CountProxies(findings []Finding, settings string) guard.ProxyCounts {
	return guard.CountProxies(settings, inspectionsOf(findings))
}

// tryPushConnections tries the commands that push connections need. It adds no weakness for a
// master that does not answer.
func (f *Finding) tryPushConnections(ctx context.Context, t master.Transport, timeout time.Duration, selectedConns PushConnections) {
	try := func(needs []pushconn.Need, effect string) {
		conn, err := t.Watch(ctx, 0)
		if err != nil {
			return
		}
		defer conn.Close()
		limits := resp.Limits{Line: 16 << 10, Bulk: 16 << 10, Elements: 64, Depth: 4, Total: 64 << 10}
		missing, err := pushconn.MissingRights(conn, resp.NewRESP3Reader(conn, limits), timeout, needs)
		if err == nil && len(missing) > 0 {
			f.Weaknesses = append(f.Weaknesses, "its user lacks "+strings.Join(missing, " ")+": "+effect)
		}
	}
	if selectedConns.ForWaiting {
		try(watchNeeds, "waiting clients poll")
	}
	if selectedConns.ForMessages {
		try(messagesNeeds(messages.Channel+selectedConns.Prefix), "SUBSCRIBE and PUBLISH may fail")
	}
}

// watchNeeds holds the commands of a watch (package watch) that need more rights than locks do. The
// key may or may not exist.
var watchNeeds = []pushconn.Need{
	{Words: []string{"PING"}, Right: "+ping"},
	{Words: []string{"PTTL", script.OwnPrefix + "marker"}, Right: "+pttl"},
	{Words: []string{"GETRANGE", script.OwnPrefix + "marker", "0", "0"}, Right: "+getrange"},
	{Words: []string{"CLIENT", "TRACKING", "ON"}, Right: "+client|tracking"},
}

// messagesNeeds returns the commands for messages (package messages). Receivers ignore an empty
// message.
func messagesNeeds(channel string) []pushconn.Need {
	rule := "&" + messages.Channel + "*"
	return []pushconn.Need{
		{Words: []string{"PING"}, Right: "+ping"},
		{Words: []string{"PUBLISH", channel, ""}, Right: "+publish", Channel: rule},
		{Words: []string{"SUBSCRIBE", channel}, Right: "+subscribe", Channel: rule},
	}
}

// evaluate fills in the finding from the master's report.
func (f *Finding) evaluate(v guard.Report) {
	f.Version, f.Role, f.Policy, f.Appendfsync, f.Uptime = v.Version, v.Role, v.Policy, v.Appendfsync, v.Uptime
	f.runID, f.databases = v.RunID, v.Databases
	f.Votes, f.New, f.LongestTTL = v.Votes(), v.IsNew(), v.LongestTTL
	f.Marker, f.QuarantineElapsed = v.State()
	if reason := v.UnfitCause(); reason != "" {
		f.SafetyProblems = append(f.SafetyProblems, reason)
	}
	if !v.Durable() {
		f.Weaknesses = append(f.Weaknesses, "forgets locks when it restarts: set appendonly yes and appendfsync always")
	}
	f.SettingsProblems = append(f.SettingsProblems, v.Differences...)
	if v.RunID == guard.NotReported {
		f.Weaknesses = append(f.Weaknesses, "does not show its run_id: a restart from older data goes unnoticed")
	}
}

// markSameServer adds a safety problem to each master that is the same server as an earlier master
// with another address.
func markSameServer(findings []Finding) {
	nameByRunID := map[string]string{}
	for i := range findings {
		f := &findings[i]
		if f.runID == "" || f.runID == guard.NotReported {
			continue
		}
		if other, known := nameByRunID[f.runID]; known {
			f.SafetyProblems = append(f.SafetyProblems, guard.DuplicateServer+other)
		}
		nameByRunID[f.runID] = f.Name
	}
}

// ExamineServer connects to a Redis that is not a master, such as the upstream, and returns its
// properties. It changes nothing on the server. If the login in the URL is missing or lacks
// permissions, the finding has only a name, a round trip, and possibly a Refusal.
func ExamineServer(ctx context.Context, url string, access master.Access) Finding {
	f := Finding{Name: master.NameFromURL(url)}
	server, err := master.NewServerClient(url, access)
	if err != nil {
		f.Err = err
		return f
	}
	defer server.Close()
	start := time.Now()
	if _, err := server.Do(ctx, "PING"); err != nil && !isDenied(err) {
		f.Err = errors.New(cmp.Or(server.Advice(ctx, err), errorText(err)))
		return f
	}
	f.RoundTrip = time.Since(start).Round(time.Microsecond)
	if info, err := server.Do(ctx, "INFO"); err == nil {
		text, _ := info.(string)
		v := guard.ReadInfo(text)
		f.Version, f.Role, f.Policy, f.Uptime, f.runID = v.Version, v.Role, v.Policy, v.Uptime, v.RunID
	}
	if reply, err := server.Do(ctx, "CONFIG", "GET", "databases"); err == nil {
		f.databaseCount = parseDatabases(reply)
	}
	ctx, cancel := context.WithTimeout(ctx, availability.TrialTime)
	defer cancel()
	_, err = server.Do(ctx, availability.TrialCommand(access.TrialKey)...)
	if refusal := availability.Refusal(err, server.HasLogin()); refusal != nil {
		f.Refusal = errors.New(errorText(refusal))
	}
	return f
}

// IsSameServer reports whether both findings concern the same Redis, even under different
// addresses. It returns false if the servers do not report their run_id.
func (f Finding) IsSameServer(other Finding) bool {
	return f.runID != "" && f.runID != guard.NotReported && f.runID == other.runID
}

// NameOf returns the name of the finding about the server with this run_id or address, or an empty
// text.
func NameOf(findings []Finding, runID, addr string) string {
	for _, f := range findings {
		if f.IsSameServer(Finding{runID: runID}) || f.Name == addr {
			return f.Name
		}
	}
	return ""
}

// isDenied reports whether an error means that the client must log in, or lacks a permission.
func isDenied(err error) bool {
	return strings.HasPrefix(err.Error(), "NOAUTH ") || strings.HasPrefix(err.Error(), "NOPERM ")
}

// errorText returns the cause of a server's error for an operator.
func errorText(err error) string {
	var lookup *net.DNSError
	var protocolErr *resp.ProtocolError
	text := err.Error()
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "no such host"
	case errors.As(err, &lookup):
		return "cannot resolve its name: " + lookup.Err
	case strings.HasPrefix(text, "WRONGPASS "):
		return "wrong password: " + text
	case strings.HasPrefix(text, "NOAUTH "):
		return "requires a password, and none is given: " + text
	case strings.HasPrefix(text, "NOPERM "):
		return "its user lacks permissions that locks need: " + text
	case errors.As(err, &protocolErr):
		return "it is not a Redis: " + text
	case strings.HasPrefix(text, "redis: "):
		return "it is not a Redis: " + strings.TrimPrefix(text, "redis: ")
	default:
		return master.CauseText(err)
	}
}
