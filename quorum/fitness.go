package quorum

import (
	"strconv"
	"strings"
	"time"
)

// UnfitError says why a master is not asked at all: a lock there cannot be relied on.
type UnfitError struct {
	// Why is a sentence about the master, as in "it is a replica".
	Why string
}

// Error is the sentence.
func (e *UnfitError) Error() string { return e.Why }

// What makes a master unfit.
const (
	whyReplica = "it is a replica: a lock there is gone with its next synchronisation"
	whyTwin    = "it is the same server as "
)

// whyPolicy is what makes a master with this maxmemory-policy unfit.
func whyPolicy(policy string) string {
	return "maxmemory-policy " + policy + " may evict a lock: set noeviction"
}

// vitals are what a master says of itself. What it does not tell is zero.
type vitals struct {
	version, runID, replID, role, policy string
	uptime                               time.Duration
	evicted                              int64
	// appendfsync is that setting, "off" where it writes no append-only file.
	appendfsync string
	// rewriteUnsynced is no-appendfsync-on-rewrite: then "always" does not mean that.
	rewriteUnsynced bool
	// neverForgot is set where it has run no command since its start that throws data
	// away, by its own count.
	neverForgot bool
	// empty is set where it holds no key in any database.
	empty bool
	// marker and record are the values of these keys, longest that of the record of the
	// longest TTL.
	marker, record string
	longest        time.Duration
	sighting       sighting
}

// untold stands for a run_id or master_replid that a server does not tell.
const untold = "-"

// readInfo takes what is needed out of the answer to INFO.
func (v *vitals) readInfo(text string) {
	info := infoFields(text)
	v.version, v.role, v.policy = info["redis_version"], info["role"], info["maxmemory_policy"]
	v.runID, v.replID = orUntold(info["run_id"]), orUntold(info["master_replid"])
	seconds, _ := strconv.ParseInt(info["uptime_in_seconds"], 10, 64)
	v.uptime = time.Duration(seconds) * time.Second
	v.evicted, _ = strconv.ParseInt(info["evicted_keys"], 10, 64)
	if info["aof_enabled"] == "0" {
		v.appendfsync = "off"
	}
}

// infoFields are the lines of INFO, by name.
func infoFields(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			info[name] = value
		}
	}
	return info
}

// hasDatabases reports whether INFO tells of any database with keys.
func hasDatabases(info string) bool {
	for name := range infoFields(info) {
		if number, ok := strings.CutPrefix(name, "db"); ok && number != "" && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	return false
}

func orUntold(s string) string {
	if s == "" {
		return untold
	}
	return s
}

// forgetting are the commands that throw data away.
var forgetting = []string{"flushall", "flushdb", "swapdb", "replicaof", "slaveof", "failover", "debug"}

// neverForgot reads INFO commandstats.
func neverForgot(commandstats string) bool {
	ran := infoFields(commandstats)
	for _, name := range forgetting {
		if _, did := ran["cmdstat_"+name]; did {
			return false
		}
	}
	return len(ran) > 0
}

// durable reports whether every write is on disk before it is answered.
func (v vitals) durable() bool { return v.appendfsync == "always" && !v.rewriteUnsynced }

// unfit says why the master may not vote whatever it holds, or nothing.
func (v vitals) unfit() string {
	switch {
	case v.role != "" && v.role != "master":
		return whyReplica
	case v.policy != "" && v.policy != "noeviction":
		return whyPolicy(v.policy)
	default:
		return ""
	}
}
