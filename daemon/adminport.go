package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/admin"
	"redlock-proxy/admin/metrics"
	"redlock-proxy/admin/status"
	"redlock-proxy/commands"
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/conf"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// adminPort serves health, metrics and the status page of a daemon. It is nil if the setting admin
// is empty; then the proxy counts no metrics.
type adminPort struct {
	listener net.Listener
	metrics  *metrics.Metrics
	server   atomic.Pointer[admin.Server]
	events   *status.Events
	// serving is set once the proxy serves clients.
	serving atomic.Bool
}

// openAdmin listens on the address of the setting admin. Serving begins later.
func openAdmin(
	ctx context.Context, cfg conf.Config, version string, cluster *quorum.Cluster, events *status.Events,
) (*adminPort, error) {
	if cfg.Admin == "" {
		return nil, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Admin)
	if err != nil {
		return nil, listenError("admin", cfg.Admin, err)
	}
	a := &adminPort{listener: listener, metrics: metrics.New(version, lossReasons()...), events: events}
	cluster.Observe(a.metrics.RoundTripRecorder)
	cluster.ObserveReleases(a.metrics.RecordRelease)
	a.setLockClasses(cfg)
	return a, nil
}

// lossReasons returns the names of the reasons for the loss of a kept lock.
func lossReasons() (names []string) {
	for _, reason := range keepalive.Reasons() {
		names = append(names, reason.String())
	}
	return names
}

// setLockClasses divides the locks into classes in the metrics. It may be called on nil.
func (a *adminPort) setLockClasses(cfg conf.Config) {
	if a != nil {
		a.metrics.SetClasses(lockClassesOf(cfg))
	}
}

// lockClassesOf returns the classes of locks. Their globs match keys as clients name them.
func lockClassesOf(cfg conf.Config) metrics.Classes {
	var names, globs []string
	for _, class := range cfg.LockClasses() {
		names, globs = append(names, class.Name), append(globs, class.Glob)
	}
	patterns, prefix := keys.NewFirstMatch(globs...), cfg.KeyPrefix
	return metrics.Classes{Names: names, IndexOf: func(keyOnMasters string) int {
		return patterns.Index(strings.TrimPrefix(keyOnMasters, prefix))
	}}
}

// Close closes the port. It may be called on nil, and more than once.
func (a *adminPort) Close() error {
	if a == nil {
		return nil
	}
	return a.listener.Close()
}

// setServing records that the proxy serves clients. It may be called on nil.
func (a *adminPort) setServing() {
	if a != nil {
		a.serving.Store(true)
	}
}

// keptLockObserver returns the observer of the locks that the proxy renews for clients, or nil if
// there is no admin port.
func (a *adminPort) keptLockObserver() keepalive.Observer {
	if a == nil {
		return nil
	}
	return a.metrics
}

// withMetrics returns the locker and the register. They count metrics if there is an admin port.
func (a *adminPort) withMetrics(locker *quorum.Locker, cluster *quorum.Cluster) (commands.Locks, lockkeys.Register) {
	if a == nil {
		return locker, cluster
	}
	return a.metrics.CountLocks(locker), a.metrics.CountRegister(cluster)
}

// serve serves requests until stop is called. Once drainCtx has ended, the proxy is no longer
// ready.
func (a *adminPort) serve(drainCtx context.Context, d *daemon) (stop func()) {
	if a == nil {
		return func() {}
	}
	page := status.New(d.statusPageOptions(drainCtx))
	machine, _ := os.Hostname() // without a name, the port serves addresses only
	port := admin.New(admin.Options{
		Ready: func() []admin.Check { return d.readinessChecks(drainCtx) }, Metrics: a.metrics.Handler(d.metricSources()), Page: page,
		Hosts: append([]string{machine}, d.cfg.AdminHosts...), Profiles: d.cfg.AdminPprof, Logger: d.log,
	})
	a.server.Store(port)
	ctx, cancel := context.WithCancel(context.WithoutCancel(drainCtx))
	var tasks sync.WaitGroup
	tasks.Go(func() { page.Run(ctx) })
	tasks.Go(func() {
		if err := port.Run(ctx, a.listener); err != nil {
			d.log.Error("health and metrics are no longer served; restart the proxy", "cause", err)
		}
	})
	d.log.Info("serving health and metrics", "admin", a.listener.Addr().String())
	return func() { cancel(); tasks.Wait() }
}

// serveProfiles switches profiles on or off. It may be called on nil.
func (a *adminPort) serveProfiles(on bool) {
	if a == nil {
		return
	}
	if port := a.server.Load(); port != nil {
		port.SetProfilesEnabled(on)
	}
}

// readinessChecks returns the checks of /readyz.
func (d *daemon) readinessChecks(drainCtx context.Context) []admin.Check {
	all := []admin.Check{d.checkServing(drainCtx), d.checkLocks()}
	if d.upstream != nil {
		all = append(all, d.checkUpstream())
	}
	return all
}

func (d *daemon) checkServing(drainCtx context.Context) admin.Check {
	c := admin.Check{Name: "clients", State: admin.Failed}
	switch {
	case d.inDrainDelay.Load():
		c.Text = "shutting down; send no new clients"
	case drainCtx.Err() != nil:
		c.Text = "draining, no new clients are served"
	case !d.admin.serving.Load():
		c.Text = "starting, no clients are served yet"
	default:
		c.State, c.Text = admin.OK, "served"
	}
	return c
}

func (d *daemon) checkLocks() admin.Check {
	inputs := d.availabilityInputs()
	c := admin.Check{Name: "locks", FormerName: "masters", Text: "available, " + inputs.Votes()}
	switch verdict := inputs.Decide(); {
	case verdict.State != availability.Available:
		c.State, c.Text = admin.Failed, verdict.Cause
	case inputs.VotingMasters < inputs.Masters:
		c.State = admin.Degraded
	}
	return c
}

func (d *daemon) checkUpstream() admin.Check {
	c := admin.Check{Name: "upstream", Text: "up"}
	if name, err := d.upstreamStatus(); err != nil {
		c.State, c.Text = admin.Degraded, fmt.Sprintf("%s: %v", name, err)
	}
	return c
}

// statusPageOptions returns the sources of the status page.
func (d *daemon) statusPageOptions(drainCtx context.Context) status.Options {
	opts := status.Options{
		Proxy:   func() status.Proxy { return d.proxyStatus(drainCtx) },
		Clients: d.countClients, Totals: d.admin.metrics.Totals, Masters: d.cluster.Status,
		Availability: d.availabilityInputs,
		Events:       d.admin.events,
	}
	if d.upstream != nil {
		opts.Upstream = d.upstreamStatus
	}
	if d.nodes != nil {
		opts.Nodes = d.pageNodes
	}
	if d.cfg.AdminLocks {
		opts.Locks = d.listLocks
	}
	return opts
}

func (d *daemon) proxyStatus(drainCtx context.Context) status.Proxy {
	p := status.Proxy{Version: d.opts.Version, Listen: d.listener.Addr().String(), State: "serving"}
	switch {
	case drainCtx.Err() != nil:
		p.State = "draining"
	case !d.admin.serving.Load():
		p.State = "starting"
	}
	clients, counts := d.countClients(), d.countCommands()
	p.Clients, p.ClientsLimit, p.Waiters = clients.Connected, clients.MaxClients, int64(counts.Waiters)
	p.DetectedLocks, p.DirectLocks = counts.DetectedLocks, counts.DirectLocks
	return p
}

func (d *daemon) listLocks(ctx context.Context, db int, match string, count int) ([]status.Lock, error) {
	found, err := d.table.Locks(ctx, db, match, count)
	all := make([]status.Lock, len(found))
	for i, l := range found {
		all[i] = status.Lock{
			Key: l.Key, State: l.State, TimeLeft: l.RemainingTTL, Votes: l.Votes, Waiters: l.Waiters, GrantedAt: l.GrantTime, Addr: l.Addr,
			Name: l.Name, Kept: l.Kept, Slots: l.Slots, Holders: len(l.Holders),
		}
	}
	return all, err
}

// metricSources returns the sources of the metrics.
func (d *daemon) metricSources() metrics.Sources {
	from := metrics.Sources{
		Clients: d.countClients, Commands: d.countCommands, Masters: d.cluster.Status, Availability: d.availabilityInputs,
		Certificate: d.certs.NotAfter,
		LogDropped:  d.opts.Logs.droppedLines,
		LastReload:  func() (time.Time, bool) { last := d.lastReload(); return last.at, last.ok },
	}
	if d.upstream != nil {
		from.Upstream = func() error { _, err := d.upstreamStatus(); return err }
	}
	if d.nodes != nil {
		from.Cluster = d.nodeMetrics
	}
	return from
}

func (d *daemon) countClients() metrics.Clients {
	c := d.server.Counts()
	return metrics.Clients{
		Connected: c.Connected, Parked: c.Parked, MaxClients: int64(d.server.MaxClients()),
		InputBytes: c.InputBytes, RefusedForInput: c.InputRefusals, UnreadBytes: c.UnreadBytes,
		DisconnectedForUnread: c.UnreadDisconnects, MessageBytes: c.MessageBytes,
		DisconnectedForMessages: c.MessageDisconnects, Accepted: c.Accepted, Refused: c.Refused, AcceptErrors: c.AcceptErrors,
		BytesToUpstream: c.BytesToUpstream, BytesToClients: c.BytesToClients, RelayedCommands: c.RelayedCommands, Redirects: c.Redirects,
	}
}

func (d *daemon) countCommands() metrics.Commands { return metrics.Commands(d.table.Counts()) }
