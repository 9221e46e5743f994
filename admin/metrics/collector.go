package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// Clients holds counts of the clients and their traffic. Connected, Parked, MaxClients, InputBytes,
// UnreadBytes and MessageBytes are current values. The other fields count since the start.
type Clients struct {
	Connected, Parked, MaxClients         int64
	Accepted, Refused, AcceptErrors       int64
	BytesToUpstream, BytesToClients       int64 // bytes
	RelayedCommands                       int64
	InputBytes                            int64 // bytes
	RefusedForInput                       int64
	UnreadBytes, DisconnectedForUnread    int64 // bytes, clients
	MessageBytes, DisconnectedForMessages int64 // bytes, clients
	Redirects                             int64 // redirects to another server
}

// Commands holds counts of commands. Waiters, RemovalsPending and KeptLocks are current values. The
// other fields count since the start.
type Commands struct {
	Waiters                          int
	LocksWithoutTTL, LostSideEffects int64
	ScriptRuns, ScriptsStopped       int64
	DetectedLocks, DetectedReleases  int64
	DirectLocks                      int64
	RemovalsPending                  int
	KeptLocks                        int64
}

// Sources holds the functions that return values of other parts of the proxy. Only Upstream,
// Cluster and Certificate are optional.
type Sources struct {
	Clients  func() Clients
	Commands func() Commands
	Masters  func() []quorum.MasterStatus
	// Availability returns the observed state of the servers that locks need, and the location of
	// the locks.
	Availability func() availability.Inputs
	// Upstream returns the reason why the upstream is down, or nil if the upstream is up. On a
	// proxy without an upstream, Upstream is nil.
	Upstream func() error
	// Cluster returns the state of the cluster that is the upstream. Cluster is nil if the upstream
	// is not a cluster.
	Cluster func() Cluster
	// Certificate returns the time at which the certificate for clients expires, or the zero time
	// if clients do not use TLS.
	Certificate func() time.Time
	// LogDropped returns the number of log lines that could not be written.
	LogDropped func() int64
	// LastReload returns the time at which the proxy read the current configuration. succeeded is
	// false if a reload has failed since.
	LastReload func() (at time.Time, succeeded bool)
}

// scalar describes a metric without labels.
type scalar struct {
	name  string
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(c Clients, d Commands) float64
}

// collector implements prometheus.Collector. It reads the sources.
type collector struct {
	Sources
	scalars           []scalar
	relayedBytes      *prometheus.Desc
	relayedCommands   *prometheus.Desc
	upstreamUp        *prometheus.Desc
	lockStorage       *prometheus.Desc
	formerLockStorage *prometheus.Desc // lockStorage under its former name
	certificateExpiry *prometheus.Desc
	droppedLogLines   *prometheus.Desc
	reloadSuccess     *prometheus.Desc
	reloadTime        *prometheus.Desc
	masters           masterDescs
	cluster           clusterDescs
}

func newCollector(sources Sources) *collector {
	return &collector{
		Sources: sources, scalars: withFormerNames(scalars()), masters: newMasterDescs(), cluster: newClusterDescs(),
		relayedBytes: newDesc("redlock_relay_bytes_total", "Bytes relayed between clients and the upstream.", "direction"),
		relayedCommands: newDesc("redlock_relay_commands_total",
			"Commands relayed to the upstream whose replies go to clients."),
		certificateExpiry: newDesc("redlock_tls_certificate_expiry_timestamp_seconds",
			"When the certificate for clients expires, if clients use TLS."),
		droppedLogLines: newDesc("redlock_log_lines_dropped_total",
			"Log lines that could not be written because the reader of the log was too slow or has gone."),
		reloadSuccess: newDesc("redlock_config_last_reload_successful",
			"1 if the configuration was last read without an error, at the start or at a reload, else 0."),
		reloadTime: newDesc("redlock_config_last_reload_success_timestamp_seconds",
			"When the present configuration was read."),
		lockStorage: newDesc("redlock_lock_storage",
			"Always 1. The label says where the locks on lock keys are, if they can be moved.", "place"),
		formerLockStorage: newFormerDesc("redlock_lock_storage", "place"),
		upstreamUp:        newDesc("redlock_upstream_up", "1 while the upstream answers, else 0."),
	}
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func counter(name, help string, value func(Clients, Commands) float64) scalar {
	return scalar{name, newDesc(name, help), prometheus.CounterValue, value}
}

func gauge(name, help string, value func(Clients, Commands) float64) scalar {
	return scalar{name, newDesc(name, help), prometheus.GaugeValue, value}
}

// formerNames maps metrics to their names before 0.4, which will be removed in 0.6.
func formerNames() map[string]string {
	return map[string]string{
		"redlock_script_side_effects_lost_total": "redlock_script_asides_lost_total",
		"redlock_upstream_redirects_total":       "redlock_upstream_detours_total",
		"redlock_direct_locks_total":             "redlock_stray_locks_total",
		"redlock_lock_storage":                   "redlock_locks_at",
		"redlock_master_removals_pending":        "redlock_master_removals_owed",
	}
}

// withFormerNames returns all metrics, and a copy under the former name of each metric that was
// renamed.
func withFormerNames(all []scalar) []scalar {
	names := formerNames()
	for _, s := range all {
		if former := names[s.name]; former != "" {
			all = append(all, scalar{former, newFormerDesc(s.name), s.kind, s.value})
		}
	}
	return all
}

func newFormerDesc(name string, labels ...string) *prometheus.Desc {
	return newDesc(formerNames()[name], "Former name of "+name+".", labels...)
}

// scalars returns all metrics without labels that come from Clients and Commands.
func scalars() []scalar {
	return []scalar{
		gauge("redlock_client_connections", "Connected clients.",
			func(c Clients, _ Commands) float64 { return float64(c.Connected) }),
		gauge("redlock_client_connections_parked", "Connected clients that are idle and use no goroutine.",
			func(c Clients, _ Commands) float64 { return float64(c.Parked) }),
		gauge("redlock_client_connections_limit", "Maximum number of connected clients (max-clients).",
			func(c Clients, _ Commands) float64 { return float64(c.MaxClients) }),
		counter("redlock_client_connections_accepted_total", "Accepted clients.",
			func(c Clients, _ Commands) float64 { return float64(c.Accepted) }),
		counter("redlock_client_connections_refused_total", "Clients refused because of max-clients.",
			func(c Clients, _ Commands) float64 { return float64(c.Refused) }),
		counter("redlock_client_accept_errors_total",
			"Connections that the operating system could not accept, for example for lack of file descriptors.",
			func(c Clients, _ Commands) float64 { return float64(c.AcceptErrors) }),
		gauge("redlock_client_held_input_bytes",
			"Bytes of incomplete commands, beyond the first 16 KB of each client, and of the state "+
				"that the proxy keeps for clients between commands, such as compiled scripts.",
			func(c Clients, _ Commands) float64 { return float64(c.InputBytes) }),
		counter("redlock_client_held_input_refused_total",
			"Clients disconnected because of too many bytes of incomplete commands (max-input-memory).",
			func(c Clients, _ Commands) float64 { return float64(c.RefusedForInput) }),
		gauge("redlock_client_unread_bytes", "Bytes of replies that the proxy holds because clients do not read them.",
			func(c Clients, _ Commands) float64 { return float64(c.UnreadBytes) }),
		counter("redlock_client_unread_cut_total",
			"Clients disconnected because of too many bytes of unread replies (max-unread-memory).",
			func(c Clients, _ Commands) float64 { return float64(c.DisconnectedForUnread) }),
		gauge("redlock_message_backlog_bytes",
			"Bytes of messages that wait for subscribers of a proxy without an upstream. "+
				"A message for several subscribers counts once.",
			func(c Clients, _ Commands) float64 { return float64(c.MessageBytes) }),
		counter("redlock_message_backlog_cut_total",
			"Subscribers disconnected because of too many bytes of waiting messages (max-message-memory).",
			func(c Clients, _ Commands) float64 { return float64(c.DisconnectedForMessages) }),
		gauge("redlock_lock_waiters",
			"Clients that wait for a lock (BLOCK), or for an element of a lock key (BLPOP and similar commands).",
			func(_ Clients, d Commands) float64 { return float64(d.Waiters) }),
		gauge("redlock_removals_pending",
			"Locks that the proxy still has to remove: a command that failed may have left them.",
			func(_ Clients, d Commands) float64 { return float64(d.RemovalsPending) }),
		gauge("redlock_kept_locks", "Locks that the proxy renews for clients (KEEPALIVE).",
			func(_ Clients, d Commands) float64 { return float64(d.KeptLocks) }),
		counter("redlock_locks_without_ttl_total", "Lock keys that ordinary commands set without a TTL.",
			func(_ Clients, d Commands) float64 { return float64(d.LocksWithoutTTL) }),
		counter("redlock_script_runs_total", "Runs of scripts on lock keys, repetitions included.",
			func(_ Clients, d Commands) float64 { return float64(d.ScriptRuns) }),
		counter("redlock_script_runs_stopped_total",
			"Runs of scripts on lock keys that reached a limit, or got no turn in time (BUSY).",
			func(_ Clients, d Commands) float64 { return float64(d.ScriptsStopped) }),
		counter("redlock_script_side_effects_lost_total",
			"Side effects at the upstream that scripts on lock keys asked for, and that did not run.",
			func(_ Clients, d Commands) float64 { return float64(d.LostSideEffects) }),
		counter("redlock_upstream_redirects_total",
			"Redirects to another server that the upstream sent, and that the proxy did not pass on.",
			func(c Clients, _ Commands) float64 { return float64(c.Redirects) }),
		counter("redlock_uncovered_locks_total",
			"Locks taken at the upstream alone, on keys that no glob of lock-keys matches.",
			func(_ Clients, d Commands) float64 { return float64(d.DetectedLocks) }),
		counter("redlock_uncovered_releases_total",
			"Locks released at the upstream alone, on keys that no glob of lock-keys matches.",
			func(_ Clients, d Commands) float64 { return float64(d.DetectedReleases) }),
		counter("redlock_direct_locks_total",
			"Lock keys that the proxy noticed at the upstream while the locks are on the masters.",
			func(_ Clients, d Commands) float64 { return float64(d.DirectLocks) }),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, s := range c.scalars {
		out <- s.desc
	}
	out <- c.relayedBytes
	out <- c.relayedCommands
	out <- c.upstreamUp
	out <- c.lockStorage
	out <- c.formerLockStorage
	out <- c.certificateExpiry
	out <- c.droppedLogLines
	out <- c.reloadSuccess
	out <- c.reloadTime
	c.masters.describe(out)
	c.cluster.describe(out)
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	clients, commands := c.Clients(), c.Commands()
	for _, s := range c.scalars {
		out <- metric(s.desc, s.kind, s.value(clients, commands))
	}
	if c.Upstream != nil {
		out <- metric(c.relayedBytes, prometheus.CounterValue, float64(clients.BytesToUpstream), "to_upstream")
		out <- metric(c.relayedBytes, prometheus.CounterValue, float64(clients.BytesToClients), "to_clients")
		out <- metric(c.relayedCommands, prometheus.CounterValue, float64(clients.RelayedCommands))
		out <- metric(c.upstreamUp, prometheus.GaugeValue, boolValue(c.Upstream() == nil))
	}
	if c.Cluster != nil {
		c.cluster.collect(out, c.Cluster())
	}
	inputs := c.Availability()
	if at := inputs.LockStorage(); at != "" {
		out <- metric(c.lockStorage, prometheus.GaugeValue, 1, at)
		out <- metric(c.formerLockStorage, prometheus.GaugeValue, 1, at)
	}
	if c.Certificate != nil {
		if until := c.Certificate(); !until.IsZero() {
			out <- metric(c.certificateExpiry, prometheus.GaugeValue, float64(until.Unix()))
		}
	}
	out <- metric(c.droppedLogLines, prometheus.CounterValue, float64(c.LogDropped()))
	at, succeeded := c.LastReload()
	out <- metric(c.reloadSuccess, prometheus.GaugeValue, boolValue(succeeded))
	out <- metric(c.reloadTime, prometheus.GaugeValue, float64(at.Unix()))
	c.masters.collect(out, c.Masters(), inputs, time.Now())
}

// metric returns a metric with this value. If the value or a label is invalid, the metric reports
// an error; a panic would end the process.
func metric(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(desc, kind, value, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}

// boolValue returns 1 for true, else 0.
func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
