package guard

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/quorum/guard/marker"
)

// Report holds a master's report of its state. Fields that the master does not report are zero, but
// RunID and ReplID are NotReported. WasReplica and RewriteUnsynced are then set.
type Report struct {
	Version, RunID, ReplID, Role, Policy string
	Uptime                               time.Duration
	Evicted                              int64
	// FreeMemory is the number of bytes for which the master has room; negative if it has no limit.
	FreeMemory int64
	// WasReplica is set if the master may have been a replica since it started: its master_replid2
	// is not all zeros.
	WasReplica bool
	// Appendfsync is the setting appendfsync; "off" if the master writes no append-only file.
	Appendfsync string
	// RewriteUnsynced is the setting no-appendfsync-on-rewrite. If it is set, Redis does not always
	// sync writes, even if Appendfsync is "always".
	RewriteUnsynced bool
	// IsProxy is set if the server is a proxy, possibly this one, instead of a Redis server.
	IsProxy bool
	// Empty is set if the master has no key in any database, except the list of proxies and a
	// quarantine record.
	Empty bool
	// Databases holds the numbers of the databases with keys.
	Databases []int
	// Marker and Record are the marker and the quarantine record. LongestTTL is the master's record
	// of the longest TTL in use.
	Marker     marker.Stored[marker.Marker]
	Record     marker.Stored[marker.Record]
	LongestTTL time.Duration
	// AdmittedAt is the time at which the master was admitted, by its clock; zero if unknown.
	AdmittedAt time.Duration
	// Promise holds the era and the ballot of the master's last promise for a change of the
	// masters; empty if there was none.
	Promise string
	// Rules holds the rules that all proxies on the master must share; empty if none were written
	// yet.
	Rules        string
	ClockReading ClockReading
	// Refusal is the master's error for a trial write, or nil.
	Refusal error
	// Proxies holds the running proxies that announced themselves on the master, Differences the
	// differences between them.
	Proxies     []Proxy
	Differences []string
}

// NotReported replaces a run_id or master_replid that a server does not report.
const NotReported = "-"

// ReadInfo returns the report in a reply to INFO.
func ReadInfo(text string) (v Report) {
	info := redisinfo.Parse(text)
	v.Version, v.Role, v.Policy = info["redis_version"], info["role"], info["maxmemory_policy"]
	// Valkey reports its version in addition to the compatible version of Redis.
	if valkey := info["valkey_version"]; valkey != "" {
		v.Version = "valkey " + valkey
	}
	v.RunID, v.ReplID = cmp.Or(info["run_id"], NotReported), cmp.Or(info["master_replid"], NotReported)
	v.WasReplica = strings.Trim(cmp.Or(info["master_replid2"], NotReported), "0") != ""
	seconds, _ := strconv.ParseInt(info["uptime_in_seconds"], 10, 64)
	v.Uptime = time.Duration(seconds) * time.Second
	v.Evicted, _ = strconv.ParseInt(info["evicted_keys"], 10, 64)
	v.FreeMemory = info.FreeMemory()
	_, v.IsProxy = info["redlock_masters"]
	v.Databases = info.Databases()
	if info["aof_enabled"] == "0" {
		v.Appendfsync = "off"
	}
	return v
}

// readProxies parses the entries, and keeps the entries of running proxies.
func (v *Report) readProxies(entries map[string]string) {
	var runningProxies []Proxy
	for id, entry := range entries {
		if p, _ := parseProxy(id, entry); (v.ClockReading.ServerTime - p.LastAnnounced).Abs() < ProxyTimeout {
			runningProxies = append(runningProxies, p)
		}
	}
	v.Proxies, v.Differences = runningProxies, proxyDifferences(runningProxies)
}

// markedAt returns the time, by the master's clock, at which the master got its marker or its
// record; zero if unknown.
func (v Report) markedAt() time.Duration {
	if v.Marker.Valid {
		return v.AdmittedAt
	}
	return time.Duration(v.Record.Value.WrittenAt) * time.Millisecond
}

// isNewer reports whether proxies of a later version have stored data on the master that this proxy
// may misunderstand.
func (v Report) isNewer() bool {
	return marker.ProtocolOf(v.Marker.Text, v.Record.Text) > marker.Protocol
}

// Durable reports whether every write is on disk before its reply.
func (v Report) Durable() bool { return v.Appendfsync == "always" && !v.RewriteUnsynced }

// watchTime returns how long the running proxies have watched the master in quarantine.
func (v Report) watchTime() (watchTime time.Duration) {
	for _, p := range v.Proxies {
		since := max(p.FirstAnnounced, time.Duration(v.Record.Value.WrittenAt)*time.Millisecond)
		watchTime = max(watchTime, v.ClockReading.ServerTime-since)
	}
	return watchTime
}
