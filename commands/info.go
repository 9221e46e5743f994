package commands

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"redlock-proxy/quorum"
)

// section is one of INFO: its name and its lines.
type section struct {
	name  string
	lines func(t *Table) []string
}

func infoSections() []section {
	return []section{
		{"Server", (*Table).infoServer},
		{"Clients", (*Table).infoClients},
		{"Memory", func(*Table) []string { return infoMemory() }},
		{"Persistence", func(*Table) []string { return []string{"loading:0"} }},
		{"Replication", func(*Table) []string { return []string{"role:master", "connected_slaves:0"} }},
		{"Cluster", func(*Table) []string { return []string{"cluster_enabled:0"} }},
		{"Redlock", (*Table).infoRedlock},
	}
}

// cmdInfo is INFO [section …]; a section it does not have is left out, as Redis
// does.
func (t *Table) cmdInfo(_ context.Context, _ *Client, args [][]byte, out *Reply) {
	var parts []string
	for _, s := range infoSections() {
		if infoWanted(args[1:], s.name) {
			parts = append(parts, "# "+s.name+"\r\n"+strings.Join(s.lines(t), "\r\n")+"\r\n")
		}
	}
	out.Text(strings.Join(parts, "\r\n"))
}

func infoWanted(asked [][]byte, name string) bool {
	for _, a := range asked {
		switch lower(a) {
		case "default", "all", "everything", strings.ToLower(name):
			return true
		}
	}
	return len(asked) == 0
}

func (t *Table) infoServer() []string {
	return []string{
		"redis_version:" + redisVersion,
		"redis_mode:standalone",
		"redlock_proxy_version:" + t.opts.Version,
		"os:" + runtime.GOOS + " " + runtime.GOARCH,
		fmt.Sprintf("process_id:%d", os.Getpid()),
		fmt.Sprintf("uptime_in_seconds:%d", int(time.Since(t.started).Seconds())),
	}
}

func (t *Table) infoClients() []string {
	return []string{
		fmt.Sprintf("connected_clients:%d", t.opts.Clients()),
		fmt.Sprintf("maxclients:%d", t.opts.MaxClients),
	}
}

func infoMemory() []string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return []string{fmt.Sprintf("used_memory:%d", m.HeapAlloc), "maxmemory_policy:noeviction"}
}

// masterState is what a master is up to: whether it votes, or why not and for how long.
func masterState(m quorum.MasterStatus) string {
	switch {
	case m.Err != nil && m.Standing == quorum.Unfit:
		return fmt.Sprintf("unfit,cause=%v", m.Err)
	case m.Err != nil:
		return fmt.Sprintf("down,cause=%v", m.Err)
	case m.Quarantine != nil:
		return fmt.Sprintf("quarantine,reason=%s,ready_in_seconds=%d", m.Quarantine.Reason(), seconds(m.Quarantine.Left()))
	default:
		return fmt.Sprintf("voting,round_trip_us=%d", m.RoundTrip.Microseconds())
	}
}

// seconds rounds up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// infoRedlock tells what the masters are up to.
func (t *Table) infoRedlock() []string {
	masters := t.opts.Masters()
	up, voting := 0, 0
	lines := make([]string, len(masters))
	for i, m := range masters {
		if m.Err == nil {
			up++
		}
		if m.Err == nil && m.Quarantine == nil {
			voting++
		}
		lines[i] = fmt.Sprintf("redlock_master%d:address=%s,state=%s,for_seconds=%d", i, m.Name, masterState(m), int(time.Since(m.Since).Seconds()))
	}
	head := []string{
		fmt.Sprintf("redlock_masters:%d", len(masters)),
		fmt.Sprintf("redlock_masters_up:%d", up),
		fmt.Sprintf("redlock_masters_voting:%d", voting),
		fmt.Sprintf("redlock_majority:%d", quorum.Majority(len(masters))),
	}
	if t.lockKeys.Any() {
		head = append(head,
			fmt.Sprintf("redlock_locks_without_ttl:%d", t.tallies.endless.Load()),
			fmt.Sprintf("redlock_script_asides_lost:%d", t.tallies.asidesLost.Load()))
	}
	return append(head, lines...)
}
