package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/admin/status"
	"redlock-proxy/commands"
	"redlock-proxy/commands/auth/users"
	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/move"
	"redlock-proxy/commands/move/directwrites"
	"redlock-proxy/commands/pubsub"
	"redlock-proxy/commands/server"
	"redlock-proxy/conf"
	"redlock-proxy/internal/certs"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/proxy"
	"redlock-proxy/proxy/cluster"
	"redlock-proxy/proxy/translate"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/location"
)

// tcpKeepAlive is the pause between TCP keepalive probes: Redis' default of tcp-keepalive.
const tcpKeepAlive = 300 * time.Second

// Options configures a proxy.
type Options struct {
	Config  conf.Config
	Version string
	Log     *slog.Logger
	// Logs is the destination of Log. Its level and format follow the settings. If Logs is nil,
	// they do not change.
	Logs *Logs
	// Read reads the configuration again. It is nil if there is no configuration to read.
	Read func() (conf.Config, error)
	// Hangups delivers signals that each start a reload. It may be nil.
	Hangups <-chan os.Signal
	// OnReady, unless it is nil, gets the listen address once the proxy serves clients.
	OnReady func(net.Addr)
}

// Serve runs a proxy until ctx ends and the commands of its clients are done.
func Serve(ctx context.Context, o Options) error {
	return serveSupervised(ctx, o.Log, func(notifyReady func(checkAlive func() error)) error {
		d, err := newDaemon(ctx, o)
		if err != nil {
			return err
		}
		defer d.admin.Close()
		defer d.listener.Close()
		return d.runUntilStopped(ctx, func() error {
			return d.run(ctx, func(addr net.Addr) {
				notifyReady(func() error { return d.checkOwnHealth(addr.String()) })
				if o.OnReady != nil {
					o.OnReady(addr)
				}
			})
		})
	})
}

// shutdownGrace is the longest time that a proxy may take to end after drain-timeout has passed.
const shutdownGrace = 3 * time.Second

var errStopTimeout = errors.New(
	"the proxy did not stop in time: drain-timeout has passed, and parts of the proxy are still running")

// runUntilStopped calls run, and waits until it returns. After ctx has ended, it waits no longer
// than the settings and shutdownGrace allow.
func (d *daemon) runUntilStopped(ctx context.Context, run func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- run() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	cfg := d.currentConfig.Load().cfg
	select {
	case err := <-ended:
		return err
	case <-time.After(cfg.DrainDelay + cfg.DrainTimeout + shutdownGrace):
		return errStopTimeout
	}
}

// daemon holds the parts of a proxy. upstream is nil for a lock server. admin is nil without an
// admin port.
type daemon struct {
	cfg              conf.Config // the configuration at the start
	opts             Options
	currentConfig    atomic.Pointer[appliedConfig]
	reloadMutexes    reloadMutexes
	lastReloadResult atomic.Pointer[reloadResult]
	// lastMastersError is the last logged reason why the configuration names different masters.
	lastMastersError string
	log              *slog.Logger
	audit            *slog.Logger // for audit-log
	certs            *certs.Certificates
	users            *users.Users // nil: the proxy has no users of its own
	cluster          *quorum.Cluster
	upstream         *upstream.Upstream // for the port of listen; for a cluster, its entrance
	nodes            *cluster.Cluster   // nil: the upstream is no cluster
	table            *commands.Table
	tableAtUpstream  *commands.Table       // used if the locks are at the upstream; nil: never used
	directWrites     *directwrites.Watcher // nil: the proxy does not watch the upstream
	server           *proxy.Server         // serves the port of listen
	serverOptions    proxy.Options         // the options of server
	listener         net.Listener
	admin            *adminPort
	// stopping is set once the proxy has been asked to stop.
	stopping atomic.Bool
	// inDrainDelay is set while drain-delay runs.
	inDrainDelay atomic.Bool
}

// newDaemon creates the parts, and listens. It serves no clients yet.
func newDaemon(ctx context.Context, o Options) (*daemon, error) {
	cfg, log := o.Config, o.Log
	password, err := cfg.ClientPassword()
	if err != nil {
		return nil, err
	}
	d, configured := &daemon{opts: o, audit: auditLogger(log)}, cfg
	var events *status.Events
	if cfg.Admin != "" {
		events = status.NewEvents()
		log = events.WrapLogger(log)
	}
	d.log = log
	if d.users, err = LoadUsers(cfg, log); err != nil {
		return nil, err
	}
	if d.certs, err = certs.Load(cfg.CertificateFiles()); err != nil {
		return nil, err
	}
	id := newID()
	if err := d.openUpstream(ctx, cfg, id); err != nil {
		return nil, err
	}
	d.cluster, err = quorum.NewCluster(quorum.Options{
		Masters: cfg.Masters, Access: MasterAccess(cfg, d.certs), MaxTTL: cfg.MaxTTL,
		FreshStart: cfg.FreshStart, Unguarded: !cfg.Guard, Logger: log, OnMastersChanged: d.followMasters,
		Tagged: len(cfg.LockTags) > 0, Settings: SharedSettings(cfg), FromUpstream: cfg.MoveFromUpstream,
		Record: locationRecord(d.upstream, cfg), Name: d.displayName,
	})
	if err != nil {
		return nil, err
	}
	if err := limitClients(&cfg, log); err != nil {
		return nil, err
	}
	d.cfg = cfg
	d.currentConfig.Store(&appliedConfig{cfg: configured, password: password, maxClients: cfg.MaxClients})
	d.lastReloadResult.Store(&reloadResult{at: time.Now(), ok: true})
	if err := d.listen(ctx); err != nil {
		return nil, err
	}
	if d.admin, err = openAdmin(ctx, cfg, o.Version, d.cluster, events); err != nil {
		return nil, errors.Join(err, d.listener.Close())
	}
	d.newServer(id, password)
	return d, nil
}

// openUpstream makes the upstream or, if it is a cluster, its nodes.
func (d *daemon) openUpstream(ctx context.Context, cfg conf.Config, id string) (err error) {
	if !cfg.HasCluster() {
		d.upstream, err = newUpstream(ctx, cfg, id, d.certs, d.log)
		return err
	}
	if d.nodes, err = d.newNodes(cfg, id); err == nil {
		d.upstream = d.nodes.Entrance()
	}
	return err
}

// displayName returns the name of the proxy for operators: its listen address. If it listens on all
// or on loopback addresses, the machine's name replaces the host.
func (d *daemon) displayName() string {
	host, port, _ := net.SplitHostPort(d.listener.Addr().String())
	if ip := net.ParseIP(host); ip.IsUnspecified() || ip.IsLoopback() {
		host, _ = os.Hostname()
	}
	return net.JoinHostPort(host, port)
}

// SharedSettings returns the settings that all proxies on the same masters must have in common.
func SharedSettings(cfg conf.Config) string {
	return lockkeys.SharedSettings(cfg.KeyPrefix, cfg.LockKeys, cfg.LockTags, cfg.Guard, cfg.MoveFromUpstream)
}

// listen listens for clients, unless a master or the upstream has the same address.
func (d *daemon) listen(ctx context.Context) error {
	config := net.ListenConfig{KeepAlive: tcpKeepAlive}
	listener, err := config.Listen(ctx, "tcp", d.cfg.Listen)
	if err != nil {
		return listenError("listen", d.cfg.Listen, err)
	}
	if err := checkNotSelf(ctx, d.cfg, listener.Addr().String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	d.listener = listener
	return nil
}

// run serves clients until ctx ends and the clients' commands are done. The connections to the
// masters and the upstream stay open until then, so that running commands finish.
func (d *daemon) run(ctx context.Context, notifyReady func(net.Addr)) error {
	defer d.admin.serve(ctx, d)() // the admin port stops last
	servers, stopServers := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	tasks.Go(func() { d.handleHangups(servers, d.opts.Hangups) })
	tasks.Go(func() { _ = d.cluster.Run(servers) })
	tasks.Go(func() { d.table.Keeper().Run(servers) })
	if d.upstream != nil {
		defer d.upstream.Close()
	}
	defer tasks.Wait()
	defer stopServers()

	waitForMasters(ctx, d.cfg, d.cluster, d.log)
	clients, stopClients := context.WithCancel(context.WithoutCancel(ctx))
	defer stopClients()
	tasks.Go(func() { d.delayDrain(ctx, clients, stopClients) })
	served := make(chan error, 1)
	go func() { served <- d.server.Serve(clients, d.listener) }()
	nodesDrained := d.serveNodes(servers, clients)
	if d.upstream != nil {
		err := d.awaitNodes(ctx)
		if err == nil {
			err = runFirstProbe(ctx, d.upstream)
		}
		if err != nil {
			stopClients()
			<-served
			<-nodesDrained
			return err
		}
		tasks.Go(func() { _ = d.upstream.Run(servers) })
	}
	if d.directWrites != nil {
		tasks.Go(func() { d.directWrites.Run(servers) })
	}
	d.admin.setServing()
	d.warnCertificateValidity()
	d.warnOpenUsers()
	d.warnProtectedMode()
	d.log.Info("serving clients", "listen", d.listener.Addr().String(), "version", d.opts.Version)
	tasks.Go(func() { d.watchAvailability(clients) })
	notifyReady(d.listener.Addr())
	err := <-served
	stopClients() // if the listener has failed
	<-nodesDrained
	d.log.Info("stopped")
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// delayDrain waits until stopCtx ends, and calls stop after drain-delay has passed. During
// drain-delay the proxy serves clients, but reports that it is not ready.
func (d *daemon) delayDrain(stopCtx, clientCtx context.Context, stop func()) {
	select {
	case <-clientCtx.Done():
		return
	case <-stopCtx.Done():
	}
	defer stop()
	d.stopping.Store(true)
	delay := d.currentConfig.Load().cfg.DrainDelay
	if delay == 0 {
		return
	}
	d.log.Info("shutting down: not ready, but accepting clients until drain-delay has passed", "drain-delay", delay)
	d.inDrainDelay.Store(true)
	defer d.inDrainDelay.Store(false)
	_ = pacing.Sleep(clientCtx, delay)
}

// newID returns a random name that no other proxy has.
func newID() string {
	var bits [20]byte
	_, _ = rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// listenError returns an error with the setting and the innermost cause.
func listenError(setting, address string, err error) error {
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	return fmt.Errorf("--%s: %q: %w", setting, address, err)
}

// newServer connects the parts: proxy → commands → quorum.
func (d *daemon) newServer(id, clientPassword string) {
	cfg, up := d.cfg, d.upstream
	locker := quorum.NewLocker(d.cluster)
	locks, register := d.admin.withMetrics(locker, d.cluster)
	opts := commands.Options{
		Locks:                 locks,
		KeptLockObserver:      d.admin.keptLockObserver(),
		Holdings:              locker,
		AllKeys:               locker,
		Register:              register,
		Mark:                  d.cluster.WatchChange,
		Scripts:               quorum.NewScriptBodies(d.cluster),
		KeyPrefix:             cfg.KeyPrefix,
		LockKeys:              cfg.LockKeys,
		LockTags:              cfg.LockTags,
		MastersRecordLocation: cfg.Guard,
		Logger:                d.log,
		Audit:                 d.audit,
		Users:                 d.users,
		Server: server.Options{
			Cluster:         cfg.ClusterMode == "emulated",
			Version:         d.opts.Version,
			Masters:         d.cluster.Status,
			Availability:    d.availabilityInputs,
			RemovalsPending: d.cluster.RemovalsPending,
			Clients:         func() int { return d.server.Clients() },
			AcceptErrors:    func() int64 { return d.server.AcceptErrors() },
			ID:              id,
			Draining:        d.stopping.Load,
			Reload:          d.reload,
		},
	}
	opts.MessageCarrier = func(deliver func(quorum.Message)) pubsub.Carrier {
		return quorum.NewMessages(d.cluster, cfg.KeyPrefix, deliver)
	}
	newTable := commands.NewTable
	if up != nil && d.nodes == nil {
		up.RefuseMasters(d.cluster.MasterName)
		up.EnableTrialWrites(trialKey(cfg.LockKeys), func() bool {
			at, _ := d.cluster.CurrentLocation()
			return RecordsLocation(cfg) && at.Place == location.Upstream
		})
	}
	if up != nil {
		opts.Server.Upstream, opts.Functions = d.upstreamStatus, up
		newTable = commands.NewRelayTable
	}
	served := proxy.Options{Upstream: up, Users: d.users, Balancers: d.cfg.Balancers(), Logger: d.log}
	if d.nodes != nil {
		served.Nodes, served.AnnouncedHost = d.nodes, cfg.Announce
		opts.Server.NamesNodes, opts.Server.Nodes = translate.NamesNodes, d.nodeStatus
	}
	if CanMove(cfg) {
		d.directWrites = directwrites.New(directwrites.Options{
			Upstream: up, LockKeys: cfg.LockKeys, OwnAddrs: func() []string { return d.server.UpstreamConnections() },
			Logger: d.log,
			IsAtMasters: func() bool {
				at, known := d.cluster.CurrentLocation()
				return known && at.Place == location.Masters
			},
		})
		opts.Server.DirectWrites = d.directWrites
		opts.MoveOptions = &move.Options{Masters: d.cluster,
			Connect: func(ctx context.Context) (move.Connection, error) { return up.OpenConn(ctx) }}
	}
	d.table = newTable(opts)
	if RecordsLocation(cfg) {
		served.LockLocation = d.cluster
	}
	if opts.MoveOptions != nil {
		d.tableAtUpstream = commands.NewTableAtUpstream(d.table, opts)
		served.UpstreamTable = d.tableAtUpstream
	}
	d.applyToTables(cfg)
	served.Table = d.table
	d.server, d.serverOptions = proxy.NewServer(served), served
	d.server.Apply(serverSettings(cfg, clientPassword, d.certs))
}

// LoadUsers reads the proxy's own users from the ACL file. It returns nil if there is no file.
func LoadUsers(cfg conf.Config, log *slog.Logger) (*users.Users, error) {
	if cfg.ACLFile == "" {
		return nil, nil
	}
	own, err := users.Load(cfg.ACLFile, commands.Catalog(), log)
	if err != nil {
		return nil, fmt.Errorf("acl-file: %w", err)
	}
	return own, nil
}

// waitForMasters waits a short time for the first replies of the masters. Otherwise the first
// client could get an error only because the masters are not connected yet. The proxy starts to
// serve even if masters are down. A fresh start takes a few seconds longer.
func waitForMasters(ctx context.Context, cfg conf.Config, cluster *quorum.Cluster, log *slog.Logger) {
	timeout := 2*cfg.MasterTimeout + 100*time.Millisecond
	if !awaitReady(ctx, cluster, timeout) && cluster.IsFreshStart() {
		log.Info("all masters are empty: waiting for other proxies that may know of locks")
		awaitReady(ctx, cluster, quorum.FreshStartTime+timeout)
	}
}

func awaitReady(ctx context.Context, cluster *quorum.Cluster, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return cluster.WaitReady(ctx)
}

// applyToTables applies settings to all commands.
func (d *daemon) applyToTables(cfg conf.Config) {
	d.table.Apply(tableSettings(cfg))
	if d.tableAtUpstream != nil {
		d.tableAtUpstream.Apply(tableSettings(cfg))
	}
}
