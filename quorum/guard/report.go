package guard

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/quorum/guard/marker"
)

// Report is what a master reports of itself. What it does not report is zero.
type Report struct {
	Version, RunID, ReplID, Role, Policy string
	Uptime                               time.Duration
	Evicted                              int64
	// Room is for how many more bytes it has room; negative: it has no limit.
	Room int64
	// WasReplica is set if it may have been a replica since it started: its master_replid2 is not
	// that of a server that never was one.
	WasReplica bool
	// Appendfsync is that setting, "off" where it writes no append-only file.
	Appendfsync string
	// RewriteUnsynced is no-appendfsync-on-rewrite: then "always" does not mean that.
	RewriteUnsynced bool
	// Proxy is set where it is no Redis but a proxy such as this one, or this one itself.
	Proxy bool
	// Empty is set where it holds no key in any database, but for the list of proxies and a
	// quarantine record.
	Empty bool
	// Databases are those that hold keys.
	Databases []int
	// Marker and Record are the values of these keys, Longest is the recorded
	// longest TTL.
	Marker  marker.Stored[marker.Marker]
	Record  marker.Stored[marker.Record]
	Longest time.Duration
	// Admitted is when the master was admitted, by its clock; zero: not known.
	Admitted time.Duration
	// Promise is the era and the ballot that it promised last for a change of the masters; empty:
	// none.
	Promise string
	// Rules are what all proxies on it must have alike; empty: none were written yet.
	Rules    string
	Sighting Sighting
	// Refusal is why it took no trial write, or nil.
	Refusal error
	// Proxies are those that announced themselves there and live, Differences what these have
	// differently.
	Proxies     []Proxy
	Differences []string
}

// NotReported stands for a run_id or master_replid that a server does not report.
const NotReported = "-"

// readInfo takes what is needed out of the answer to INFO.
func (v *Report) readInfo(text string) {
	info := redisinfo.Parse(text)
	v.Version, v.Role, v.Policy = info["redis_version"], info["role"], info["maxmemory_policy"]
	if valkey := info["valkey_version"]; valkey != "" { // as well as the version of Redis that it is compatible with
		v.Version = "valkey " + valkey
	}
	v.RunID, v.ReplID = cmp.Or(info["run_id"], NotReported), cmp.Or(info["master_replid"], NotReported)
	v.WasReplica = strings.Trim(cmp.Or(info["master_replid2"], NotReported), "0") != ""
	seconds, _ := strconv.ParseInt(info["uptime_in_seconds"], 10, 64)
	v.Uptime = time.Duration(seconds) * time.Second
	v.Evicted, _ = strconv.ParseInt(info["evicted_keys"], 10, 64)
	v.Room = info.Room()
	_, v.Proxy = info["redlock_masters"]
	v.Databases = info.Databases()
	if info["aof_enabled"] == "0" {
		v.Appendfsync = "off"
	}
}

// ReadInfo is the report in an answer to INFO.
func ReadInfo(text string) Report {
	var v Report
	v.readInfo(text)
	return v
}

// hasDatabases reports whether there is any database with keys, but for database 0 if that
// may have some.
func (v *Report) hasDatabases(but0 bool) bool {
	return slices.ContainsFunc(v.Databases, func(db int) bool { return db != 0 || !but0 })
}

// readProxies takes the entries of those that are living.
func (v *Report) readProxies(entries map[string]string) {
	var living []Proxy
	for id, entry := range entries {
		if p, _ := parseProxy(id, entry); (v.Sighting.ServerTime - p.Announced).Abs() < Heard {
			living = append(living, p)
		}
	}
	v.Proxies, v.Differences = living, disagreements(living)
}

// stoodSince is since when, by the master's clock, it has its marker or its record; zero: not
// known.
func (v Report) stoodSince() time.Duration {
	if v.Marker.Valid {
		return v.Admitted
	}
	return time.Duration(v.Record.Value.Since) * time.Millisecond
}

// isNewer reports whether proxies of a later version left something on the master that this one may
// take for something else.
func (v Report) isNewer() bool {
	return marker.ProtocolOf(v.Marker.Text, v.Record.Text) > marker.Protocol
}

// Durable reports whether every write is on disk before it is answered.
func (v Report) Durable() bool { return v.Appendfsync == "always" && !v.RewriteUnsynced }

// watched is for how long the proxies that run have watched the master in quarantine.
func (v Report) watched() (longest time.Duration) {
	for _, p := range v.Proxies {
		since := max(p.First, time.Duration(v.Record.Value.Since)*time.Millisecond)
		longest = max(longest, v.Sighting.ServerTime-since)
	}
	return longest
}
