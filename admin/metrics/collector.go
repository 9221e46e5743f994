package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// Clients are what is shown of the clients and their traffic. All of it but Connected, Parked and
// Max is counted since the start.
type Clients struct {
	Connected, Parked, Max          int64
	Accepted, Refused, AcceptErrors int64
	ToUpstream, ToClients           int64 // bytes
	Relayed                         int64 // commands
	HeldInput                       int64 // bytes
	RefusedInput                    int64
	Unread, CutUnread               int64 // bytes, clients
	Messages, CutMessages           int64 // bytes, clients
	Detours                         int64 // replies that led to other servers
}

// Commands are what is shown of the commands. All of it but Waiting and RemovalsPending is counted
// since the start.
type Commands struct {
	Waiting                           int
	Endless, EffectsLost              int64
	ScriptRuns, ScriptsStopped        int64
	UncoveredLocks, UncoveredReleases int64
	StrayLocks                        int64
	RemovalsPending                   int
}

// Sources return what is counted elsewhere. All must be set but Upstream and Certificate.
type Sources struct {
	Clients  func() Clients
	Commands func() Commands
	Masters  func() []quorum.MasterStatus
	// Look sees whether locks are available.
	Look func() availability.Look
	// Upstream is why the upstream is down, or nil; it is nil itself where there is none.
	Upstream func() error
	// Certificate is when the one that clients are shown expires; zero, or nil itself, where there
	// is none.
	Certificate func() time.Time
	// LogDropped is how many lines of the log could not be written.
	LogDropped func() int64
	// Reload is when the configuration that holds was read, and whether none was refused since.
	Reload func() (at time.Time, well bool)
}

// scalar is a metric without labels that the sources return.
type scalar struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(c Clients, d Commands) float64
}

// collector reads the sources.
type collector struct {
	Sources
	scalars  []scalar
	relayed  *prometheus.Desc
	commands *prometheus.Desc
	upstream *prometheus.Desc
	locksAt  *prometheus.Desc
	expiry   *prometheus.Desc
	dropped  *prometheus.Desc
	reload   *prometheus.Desc
	reloaded *prometheus.Desc
	masters  masterDescs
}

func newCollector(from Sources) *collector {
	return &collector{
		Sources: from, scalars: scalars(), masters: newMasterDescs(),
		relayed:  describe("redlock_relay_bytes_total", "Bytes relayed between clients and the upstream.", "direction"),
		commands: describe("redlock_relay_commands_total", "Commands sent on to the upstream whose replies go to clients."),
		expiry:   describe("redlock_tls_certificate_expiry_timestamp_seconds", "When the certificate that clients are shown expires, if they speak TLS."),
		dropped:  describe("redlock_log_lines_dropped_total", "Lines of the log that could not be written, because its reader was too slow or has gone."),
		reload:   describe("redlock_config_last_reload_successful", "1 if the configuration was last read without an error, at the start or at a reload, else 0."),
		reloaded: describe("redlock_config_last_reload_success_timestamp_seconds", "When the configuration that holds was read."),
		locksAt:  describe("redlock_locks_at", "Always 1. Where the locks on lock keys are is in the label, where they can be moved.", "place"),
		upstream: describe("redlock_upstream_up", "1 while the upstream answers, else 0."),
	}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func counter(name, help string, value func(Clients, Commands) float64) scalar {
	return scalar{describe(name, help), prometheus.CounterValue, value}
}

func gauge(name, help string, value func(Clients, Commands) float64) scalar {
	return scalar{describe(name, help), prometheus.GaugeValue, value}
}

// scalars are all of them.
func scalars() []scalar {
	return []scalar{
		gauge("redlock_client_connections", "Clients that are connected.",
			func(c Clients, _ Commands) float64 { return float64(c.Connected) }),
		gauge("redlock_client_connections_parked", "Those of them that are quiet, and have no goroutine.",
			func(c Clients, _ Commands) float64 { return float64(c.Parked) }),
		gauge("redlock_client_connections_limit", "How many clients may be connected (max-clients).",
			func(c Clients, _ Commands) float64 { return float64(c.Max) }),
		counter("redlock_client_connections_accepted_total", "Clients that were accepted.",
			func(c Clients, _ Commands) float64 { return float64(c.Accepted) }),
		counter("redlock_client_connections_refused_total", "Clients that were refused because of max-clients.",
			func(c Clients, _ Commands) float64 { return float64(c.Refused) }),
		counter("redlock_client_accept_errors_total", "Connections that the system could not give, for want of file descriptors for example.",
			func(c Clients, _ Commands) float64 { return float64(c.AcceptErrors) }),
		gauge("redlock_client_held_input_bytes", "Bytes of incomplete commands, beyond the first 16 KB of each client, and of what is kept for clients between commands, compiled scripts included.",
			func(c Clients, _ Commands) float64 { return float64(c.HeldInput) }),
		counter("redlock_client_held_input_refused_total", "Clients that were sent away because of too many such bytes.",
			func(c Clients, _ Commands) float64 { return float64(c.RefusedInput) }),
		gauge("redlock_client_unread_bytes", "Bytes of replies that the proxy holds because clients do not read them.",
			func(c Clients, _ Commands) float64 { return float64(c.Unread) }),
		counter("redlock_client_unread_cut_total", "Clients that were disconnected because of too many such bytes (max-unread-memory).",
			func(c Clients, _ Commands) float64 { return float64(c.CutUnread) }),
		gauge("redlock_message_backlog_bytes", "Bytes of messages that wait for subscribers of a proxy without an upstream; what waits for several counts once.",
			func(c Clients, _ Commands) float64 { return float64(c.Messages) }),
		counter("redlock_message_backlog_cut_total", "Subscribers that were disconnected because of too many such bytes (max-message-memory).",
			func(c Clients, _ Commands) float64 { return float64(c.CutMessages) }),
		gauge("redlock_lock_waiters", "Clients that wait for a lock (BLOCK), or for what others put under a lock key (BLPOP and similar commands).",
			func(_ Clients, d Commands) float64 { return float64(d.Waiting) }),
		gauge("redlock_removals_pending", "Locks that are still to be removed, since a command with an error may have left them.",
			func(_ Clients, d Commands) float64 { return float64(d.RemovalsPending) }),
		counter("redlock_locks_without_ttl_total", "Lock keys that ordinary commands set without a TTL.",
			func(_ Clients, d Commands) float64 { return float64(d.Endless) }),
		counter("redlock_script_runs_total", "Runs of scripts on lock keys, repetitions included.",
			func(_ Clients, d Commands) float64 { return float64(d.ScriptRuns) }),
		counter("redlock_script_runs_stopped_total", "Those of them that were ended at a limit, or found no place in their time (BUSY).",
			func(_ Clients, d Commands) float64 { return float64(d.ScriptsStopped) }),
		counter("redlock_script_asides_lost_total", "Things that scripts on lock keys do at the upstream and that were not carried out.",
			func(_ Clients, d Commands) float64 { return float64(d.EffectsLost) }),
		counter("redlock_upstream_detours_total", "Replies and messages of the upstream that led clients to other servers, and were kept from them.",
			func(c Clients, _ Commands) float64 { return float64(c.Detours) }),
		counter("redlock_uncovered_locks_total", "Locks taken at the upstream alone, on keys that no glob of lock-keys matches.",
			func(_ Clients, d Commands) float64 { return float64(d.UncoveredLocks) }),
		counter("redlock_uncovered_releases_total", "Locks released at the upstream alone, on keys that no glob of lock-keys matches.",
			func(_ Clients, d Commands) float64 { return float64(d.UncoveredReleases) }),
		counter("redlock_stray_locks_total", "Lock keys that were noticed at the upstream while the locks are at the masters.",
			func(_ Clients, d Commands) float64 { return float64(d.StrayLocks) }),
	}
}

// Describe is of prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, s := range c.scalars {
		out <- s.desc
	}
	out <- c.relayed
	out <- c.commands
	out <- c.upstream
	out <- c.locksAt
	out <- c.expiry
	out <- c.dropped
	out <- c.reload
	out <- c.reloaded
	c.masters.describe(out)
}

// Collect is of prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	clients, commands := c.Clients(), c.Commands()
	for _, s := range c.scalars {
		out <- metric(s.desc, s.kind, s.value(clients, commands))
	}
	if c.Upstream != nil {
		out <- metric(c.relayed, prometheus.CounterValue, float64(clients.ToUpstream), "to_upstream")
		out <- metric(c.relayed, prometheus.CounterValue, float64(clients.ToClients), "to_clients")
		out <- metric(c.commands, prometheus.CounterValue, float64(clients.Relayed))
		out <- metric(c.upstream, prometheus.GaugeValue, number(c.Upstream() == nil))
	}
	look := c.Look()
	if at := look.LocksAt(); at != "" {
		out <- metric(c.locksAt, prometheus.GaugeValue, 1, at)
	}
	if c.Certificate != nil {
		if until := c.Certificate(); !until.IsZero() {
			out <- metric(c.expiry, prometheus.GaugeValue, float64(until.Unix()))
		}
	}
	out <- metric(c.dropped, prometheus.CounterValue, float64(c.LogDropped()))
	at, well := c.Reload()
	out <- metric(c.reload, prometheus.GaugeValue, number(well))
	out <- metric(c.reloaded, prometheus.GaugeValue, float64(at.Unix()))
	c.masters.collect(out, c.Masters(), look, time.Now())
}

// metric makes one. What cannot be one is an error of its own in the answer, and no panic, which
// would end the process.
func metric(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(desc, kind, value, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}

// number is 1 for what is so.
func number(it bool) float64 {
	if it {
		return 1
	}
	return 0
}
