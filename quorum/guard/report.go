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

// Report is a master's report of its state. What it does not report is zero.
type Report struct {
	Version, RunID, ReplID, Role, Policy string
	Uptime                               time.Duration
	Evicted                              int64
	// Room is the number of bytes for which it has room; negative if it has no limit.
	Room int64
	// WasReplica is set if it may have been a replica since it started: its master_replid2 is not
	// that of a server that never was one.
	WasReplica bool
	// Appendfsync is that setting; "off" if it writes no append-only file.
	Appendfsync string
	// RewriteUnsynced is no-appendfsync-on-rewrite: then writes are not always synced, even with
	// "always".
	RewriteUnsynced bool
	// Proxy is set if it is not a Redis server but a proxy such as this one, or this one itself.
	Proxy bool
	// Empty is set if it has no key in any database, except the list of proxies and a quarantine
	// record.
	Empty bool
	// Databases has the numbers of the databases with keys.
	Databases []int
	// Marker and Record are the values of these keys; Longest is the recorded longest TTL.
	Marker  marker.Stored[marker.Marker]
	Record  marker.Stored[marker.Record]
	Longest time.Duration
	// Admitted is when the master was admitted, by its clock; zero if unknown.
	Admitted time.Duration
	// Promise has the era and the ballot of its last promise for a change of the masters; empty if
	// there was none.
	Promise string
	// Rules has the rules that all proxies on it must share; empty if none were written yet.
	Rules    string
	Sighting Sighting
	// Refusal is the master's error for a trial write, or nil.
	Refusal error
	// Proxies has the running proxies that announced themselves on the master, Differences the
	// differences between them.
	Proxies     []Proxy
	Differences []string
}

// NotReported replaces a run_id or master_replid that a server does not report.
const NotReported = "-"

// readInfo parses an answer to INFO.
func (v *Report) readInfo(text string) {
	info := redisinfo.Parse(text)
	v.Version, v.Role, v.Policy = info["redis_version"], info["role"], info["maxmemory_policy"]
	if valkey := info["valkey_version"]; valkey != "" { // next to the version of Redis with which it is compatible
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

// ReadInfo returns the report in an answer to INFO.
func ReadInfo(text string) Report {
	var v Report
	v.readInfo(text)
	return v
}

// hasDatabases reports whether there is a database with keys; but0 ignores database 0.
func (v *Report) hasDatabases(but0 bool) bool {
	return slices.ContainsFunc(v.Databases, func(db int) bool { return db != 0 || !but0 })
}

// readProxies parses the entries, and keeps those of running proxies.
func (v *Report) readProxies(entries map[string]string) {
	var living []Proxy
	for id, entry := range entries {
		if p, _ := parseProxy(id, entry); (v.Sighting.ServerTime - p.Announced).Abs() < ProxyTimeout {
			living = append(living, p)
		}
	}
	v.Proxies, v.Differences = living, disagreements(living)
}

// markedSince returns since when, by the master's clock, it has had its marker or its record; zero
// if unknown.
func (v Report) markedSince() time.Duration {
	if v.Marker.Valid {
		return v.Admitted
	}
	return time.Duration(v.Record.Value.Since) * time.Millisecond
}

// isNewer reports whether proxies of a later version left something on the master that this one may
// misunderstand.
func (v Report) isNewer() bool {
	return marker.ProtocolOf(v.Marker.Text, v.Record.Text) > marker.Protocol
}

// Durable reports whether every write is on disk before it is answered.
func (v Report) Durable() bool { return v.Appendfsync == "always" && !v.RewriteUnsynced }

// watched returns how long the running proxies have watched the master in quarantine.
func (v Report) watched() (longest time.Duration) {
	for _, p := range v.Proxies {
		since := max(p.First, time.Duration(v.Record.Value.Since)*time.Millisecond)
		longest = max(longest, v.Sighting.ServerTime-since)
	}
	return longest
}
