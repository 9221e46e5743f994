package server

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// section holds the name of a section of INFO, and the function that returns its lines.
type section struct {
	name  string
	lines func(s *Server) []string
}

func infoSections() []section {
	return []section{
		{"Server", (*Server).infoServer},
		{"Clients", (*Server).infoClients},
		{"Memory", (*Server).infoMemory},
		{"Persistence", func(*Server) []string { return []string{"loading:0"} }},
		{"Replication", func(*Server) []string { return []string{"role:master", "connected_slaves:0"} }},
		{"Cluster", (*Server).clusterEnabled},
		{"Redlock", (*Server).infoRedlock},
	}
}

// info implements INFO [section …]. It ignores unknown sections, as Redis does.
func (s *Server) info(c command.Call) {
	var parts []string
	for _, part := range infoSections() {
		if isSectionRequested(c.Args[1:], part.name) {
			parts = append(parts, "# "+part.name+"\r\n"+strings.Join(part.lines(s), "\r\n")+"\r\n")
		}
	}
	c.Out.WriteText(strings.Join(parts, "\r\n"))
}

func isSectionRequested(requested [][]byte, name string) bool {
	for _, a := range requested {
		switch syntax.LowerCString(a) {
		case "default", "all", "everything", strings.ToLower(name):
			return true
		}
	}
	return len(requested) == 0
}

func (s *Server) infoServer() []string {
	return []string{
		"redis_version:" + redisVersion,
		"redis_mode:" + s.mode(),
		"redlock_proxy_version:" + s.opts.Version,
		"os:" + runtime.GOOS + " " + runtime.GOARCH,
		fmt.Sprintf("arch_bits:%d", strconv.IntSize),
		fmt.Sprintf("process_id:%d", os.Getpid()),
		fmt.Sprintf("uptime_in_seconds:%d", int(time.Since(s.startTime).Seconds())),
	}
}

func (s *Server) infoClients() []string {
	return []string{
		fmt.Sprintf("connected_clients:%d", s.opts.Clients()),
		fmt.Sprintf("blocked_clients:%d", s.opts.WaiterCount()),
		fmt.Sprintf("maxclients:%d", s.opts.MaxClients()),
	}
}

func (s *Server) infoMemory() []string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return []string{
		fmt.Sprintf("used_memory:%d", m.HeapAlloc), "maxmemory_policy:noeviction",
		fmt.Sprintf("number_of_cached_scripts:%d", s.opts.CachedScripts()),
	}
}

// masterState returns the state of a master. If the master does not vote, the text has the reason
// and, if known, the remaining time.
func masterState(m quorum.MasterStatus) string {
	switch {
	case m.Err != nil && m.State == quorum.Unfit:
		return "unfit,cause=" + escapeField(m.Cause())
	case m.Err != nil:
		return "down,cause=" + escapeField(m.Cause())
	case m.Quarantine != nil:
		// The text of the reason comes from the master.
		state := "quarantine,reason=" + escapeField(m.Quarantine.Reason())
		if left := m.Quarantine.TimeLeft(); left > 0 {
			state += fmt.Sprintf(",ready_in_seconds=%d", seconds(left))
		}
		return state
	default:
		return fmt.Sprintf("voting,round_trip_us=%d", m.RoundTrip.Microseconds())
	}
}

// watchState returns the number of keys that the proxy watches on a master, or the reason why it
// watches none although clients wait for locks.
func watchState(m quorum.MasterStatus) string {
	switch cause := m.UnwatchedCause(); {
	case cause != "":
		return ",unwatched=" + escapeField(cause)
	case m.WatchedKeys > 0:
		return fmt.Sprintf(",watched_keys=%d", m.WatchedKeys)
	default:
		return ""
	}
}

// escapeField replaces commas and line ends in a text, because commas separate the fields of a
// line.
func escapeField(text string) string {
	return strings.NewReplacer(",", ";", "\r", " ", "\n", " ").Replace(text)
}

// seconds returns a duration in seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// infoRedlock returns the lines about the locks and the masters.
func (s *Server) infoRedlock() []string {
	up, inputs, kept := 0, s.opts.Availability(), s.opts.KeptLocks()
	cause := inputs.Decide().Cause
	var lines []string
	masters := s.opts.Masters()
	for i, m := range masters {
		up += boolToInt(m.Err == nil)
		lines = append(lines, fmt.Sprintf("redlock_master%d:address=%s,state=%s,for_seconds=%d",
			i, m.Name, masterState(m), int(time.Since(m.Since).Seconds()))+watchState(m))
	}
	head := []string{
		"redlock_available:" + yesNo(cause == ""),
		"redlock_unavailable_cause:" + cause,
		fmt.Sprintf("redlock_masters:%d", len(masters)),
		fmt.Sprintf("redlock_masters_up:%d", up),
		fmt.Sprintf("redlock_masters_voting:%d", inputs.VotingMasters),
		fmt.Sprintf("redlock_majority:%d", quorum.Majority(len(masters))),
		fmt.Sprintf("redlock_removals_pending:%d", s.opts.RemovalsPending()),
		fmt.Sprintf("redlock_kept_locks:%d", kept.Kept),
		fmt.Sprintf("redlock_lock_renewals_total:%d", kept.Renewals),
		fmt.Sprintf("redlock_kept_locks_lost_total:%d", kept.TotalLosses()),
	}
	if s.opts.LockKeyCounts != nil {
		withoutTTL, lost := s.opts.LockKeyCounts()
		head = append(head,
			fmt.Sprintf("redlock_locks_without_ttl_total:%d", withoutTTL),
			fmt.Sprintf("redlock_script_side_effects_lost_total:%d", lost),
			fmt.Sprintf("redlock_script_asides_lost_total:%d", lost)) // former name
	}
	return append(append(head, s.infoLockStorage(inputs)...), lines...)
}

// infoLockStorage returns the lines about the location of the locks, and about lock keys at the
// upstream that clients changed directly. The glob is the last field, because it may contain any
// text without a line end. It repeats each line under the name that the line had before 0.4.
// Version 0.6 will remove the old names.
func (s *Server) infoLockStorage(inputs availability.Inputs) (lines []string) {
	if at := inputs.LockStorage(); at != "" {
		lines = append(lines, "redlock_lock_storage:"+at, "redlock_locks_at:"+at)
	}
	if s.opts.DirectWrites == nil {
		return lines
	}
	watch, last := s.opts.DirectWrites.State()
	count := s.opts.DirectWrites.Count()
	lines = append(lines,
		fmt.Sprintf("redlock_direct_locks_total:%d", count), "redlock_direct_lock_watch:"+string(watch),
		fmt.Sprintf("redlock_stray_locks_total:%d", count), "redlock_stray_locks_watch:"+string(watch))
	if last != nil {
		line := fmt.Sprintf("redlock_direct_lock_last:seconds_ago=%d,clients=%s,glob=%s",
			int(time.Since(last.At).Seconds()), escapeField(strings.Join(last.Clients, "; ")), last.Glob)
		_, text, _ := strings.Cut(line, ":")
		lines = append(lines, line, "redlock_stray_locks_last:"+text)
	}
	return lines
}

// boolToInt returns 1 for true, and 0 for false.
func boolToInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// infoDetectedLocks returns the lines about keys that are used like locks at the upstream. The glob
// is the last field, because it may contain any text without a line end.
func (s *Server) infoDetectedLocks() []string {
	if s.opts.LockDetector == nil {
		return nil
	}
	locks, releases := s.opts.LockDetector.Counts()
	lines := []string{
		fmt.Sprintf("redlock_uncovered_locks_total:%d", locks),
		fmt.Sprintf("redlock_uncovered_releases_total:%d", releases),
	}
	for i, p := range s.opts.LockDetector.Patterns() {
		lines = append(lines,
			fmt.Sprintf("redlock_uncovered_pattern%d:locks=%d,releases=%d,glob=%s", i, p.Locks, p.Releases, p.Glob))
	}
	return lines
}

// mergedInfo implements INFO with an upstream. It appends the proxy's section to the upstream's
// reply.
func (s *Server) mergedInfo(c command.Call) {
	reply, ok := c.AskUpstream()
	if !ok {
		return
	}
	if s.opts.LockKeys && s.opts.NamesNodes == nil {
		reply = withoutServerAddresses(reply)
	}
	if !isSectionRequested(c.Args[1:], "Redlock") {
		c.Out.WriteRaw(reply)
		return
	}
	own := "# Redlock\r\n" + joinLines(s.infoRedlock())
	c.Out.WriteRaw(appendText(reply, own))
}
