package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/commands"
	"redlock-proxy/conf"
	"redlock-proxy/proxy"
	"redlock-proxy/quorum"
)

// keepAlive is Redis' own tcp-keepalive.
const keepAlive = 300 * time.Second

func serveAction(c *cli.Context) error {
	cfg, err := load(c)
	if err != nil {
		return err
	}
	log, err := newLogger(c.App.ErrWriter, cfg)
	if err != nil {
		return err
	}
	for _, warning := range cfg.Warnings() {
		log.Warn(warning)
	}
	return serve(c.Context, cfg, log, func(net.Addr) {})
}

// serve runs a proxy until ctx ends and its clients are done. ready is called with
// the address once clients are served.
func serve(ctx context.Context, cfg conf.Config, log *slog.Logger, ready func(net.Addr)) error {
	cluster, err := quorum.NewCluster(quorum.Options{
		Masters: cfg.Masters, Legacy: cfg.LegacyLock, MasterTimeout: cfg.MasterTimeout, MaxTTL: cfg.MaxTTL,
		SeveralKeys: len(cfg.LockKeys) > 0,
		FreshStart:  cfg.FreshStart, Unguarded: !cfg.Guard, Logger: log,
	})
	if err != nil {
		return err
	}
	listen := net.ListenConfig{KeepAlive: keepAlive}
	ln, err := listen.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return err
	}
	upstream, err := newUpstream(cfg, log)
	if err != nil {
		return err
	}
	server := newServer(cfg, cluster, upstream, log)

	// The masters outlive the clients: what runs, finishes.
	masters, stopMasters := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { _ = cluster.Run(masters) })
	if upstream != nil {
		defer upstream.Close()
		upstream.Probe(ctx)
		running.Go(func() { _ = upstream.Run(masters) })
	}
	defer running.Wait()
	defer stopMasters()

	waitForMasters(ctx, cfg, cluster, log)
	log.Info("ready", "listen", ln.Addr().String(), "masters", len(cfg.Masters), "version", version)
	ready(ln.Addr())
	err = server.Serve(ctx, ln)
	log.Info("stopped")
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// newUpstream is nil for a lock server.
func newUpstream(cfg conf.Config, log *slog.Logger) (*proxy.Upstream, error) {
	if cfg.Upstream == "" {
		return nil, nil
	}
	return proxy.NewUpstream(cfg.Upstream, cfg.UpstreamTimeout, log)
}

// newServer puts the house together: proxy → commands → quorum.
func newServer(cfg conf.Config, cluster *quorum.Cluster, upstream *proxy.Upstream, log *slog.Logger) *proxy.Server {
	var server *proxy.Server
	opts := commands.Options{
		Locks:       quorum.NewLocker(cluster),
		Register:    cluster,
		Scripts:     quorum.NewBodies(cluster),
		MaxTTL:      cfg.MaxTTL,
		KeyPrefix:   cfg.KeyPrefix,
		LockKeys:    cfg.LockKeys,
		RefuseNoTTL: cfg.NoTTL == "refuse",
		Version:     version,
		MaxClients:  cfg.MaxClients,
		Masters:     cluster.Status,
		Clients:     func() int { return server.Clients() },
		Logger:      log,
	}
	newTable := commands.NewTable
	if upstream != nil {
		opts.Upstream, opts.Aside, newTable = upstream.Status, upstream, commands.NewRelayTable
	}
	server = proxy.NewServer(proxy.Options{
		Table: newTable(opts), Upstream: upstream,
		MaxClients: cfg.MaxClients, DrainTimeout: cfg.DrainTimeout, Logger: log,
	})
	return server
}

// waitForMasters gives the masters time for their first answer, so that the first
// client is not told that they are not connected yet. Masters that are down do not
// keep the proxy from serving.
func waitForMasters(ctx context.Context, cfg conf.Config, cluster *quorum.Cluster, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, 2*cfg.MasterTimeout+100*time.Millisecond)
	defer cancel()
	if !cluster.Ready(ctx) {
		log.Warn("fewer than a majority of the masters vote: locks are refused with NOQUORUM until they do")
	}
}
