package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"redlock-proxy/admin/metrics"
	"redlock-proxy/admin/status"
	"redlock-proxy/commands/server"
	"redlock-proxy/conf"
	"redlock-proxy/internal/certs"
	"redlock-proxy/proxy"
	"redlock-proxy/proxy/cluster"
	"redlock-proxy/proxy/upstream"
)

// newNode returns an upstream for a node of the cluster that the configuration names. The upstream
// calls suspect when it cannot reach the node.
func newNode(
	cfg conf.Config, id string, certificates *certs.Certificates, log *slog.Logger, suspect func(),
) (*upstream.Upstream, error) {
	up, err := upstream.NewNode(serverURL(cfg.Upstream), cfg.UpstreamTimeout, log, suspect)
	if err == nil {
		up.SetProxyID(id)
		up.SetTLS(certificates.ConfigureDial)
	}
	return up, err
}

// newNodes returns the nodes of the cluster that is the upstream. id is the proxy's identity.
func (d *daemon) newNodes(cfg conf.Config, id string) (*cluster.Cluster, error) {
	named, _, err := conf.ReadCluster(cfg.Upstream)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	first, last := cfg.ClusterPortRange()
	return cluster.New(cluster.Options{
		Seeds: named.Seeds, FirstPort: first, LastPort: last, Now: time.Now, Logger: d.log,
		NewUpstream: func(suspect func()) (*upstream.Upstream, error) {
			current := cfg
			if applied := d.currentConfig.Load(); applied != nil {
				current = applied.cfg
			}
			up, err := newNode(current, id, d.certs, d.log, suspect)
			if err == nil {
				up.RefuseMasters(func(runID, addr string) string { return d.cluster.MasterName(runID, addr) })
			}
			return up, err
		},
		NewServer: func(up *upstream.Upstream) cluster.Server {
			opts := d.serverOptions
			opts.Upstream, opts.ProxyState, opts.LockLocation = up, d.server.Common(), nil
			return proxy.NewServer(opts)
		},
		Listen: func(ctx context.Context, port int) (net.Listener, error) {
			host, _, _ := net.SplitHostPort(cfg.Listen) // valid, as conf has checked
			config := net.ListenConfig{KeepAlive: tcpKeepAlive}
			return config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		},
	})
}

// serveNodes serves the nodes of the cluster until clientCtx ends, and waits until their clients
// are drained. It then closes the returned channel. Without a cluster, it closes the channel at
// once.
func (d *daemon) serveNodes(serverCtx, clientCtx context.Context) (done <-chan struct{}) {
	ended := make(chan struct{})
	if d.nodes == nil {
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		d.nodes.Run(serverCtx, clientCtx)
	}()
	return ended
}

// awaitNodes waits until the proxy has asked the nodes of the cluster for the first time. It
// returns an error if the upstream is no cluster. If no node answers, the proxy serves
// nevertheless.
func (d *daemon) awaitNodes(ctx context.Context) error {
	if d.nodes == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.UpstreamTimeout)
	defer cancel()
	if err := d.nodes.WaitFirstPoll(ctx); errors.Is(err, upstream.ErrNoCluster) {
		return fmt.Errorf("upstream: %w", err)
	}
	return nil
}

// upstreamStatus returns the address of the upstream, or a name of the cluster, and the reason why
// it is down; nil if it is up.
func (d *daemon) upstreamStatus() (name string, err error) {
	if d.nodes != nil {
		return d.nodes.Status()
	}
	return d.upstream.Status()
}

// nodeStatus returns the state of the nodes of the cluster, for PROXY INFO.
func (d *daemon) nodeStatus() (all []server.Node, unservedSlots int) {
	for _, n := range d.nodes.Nodes() {
		all = append(all, server.Node{
			ID: n.ID, Address: n.Addr(), Listen: n.ListenPort, IsMaster: n.IsMaster(), IsGone: n.IsGone(),
			Slots: n.SlotCount(), Clients: n.Clients, Err: n.Err,
		})
	}
	return all, d.nodes.UnservedSlots()
}

// pageNodes returns the state of the nodes of the cluster, for the status page.
func (d *daemon) pageNodes() (all []status.Node) {
	for _, n := range d.nodes.Nodes() {
		role := "replica"
		if n.IsMaster() {
			role = "master"
		}
		all = append(all, status.Node{
			Listen: n.ListenPort, Address: n.Addr(), Role: role, Slots: n.SlotCount(), Clients: n.Clients, Err: n.Err,
		})
	}
	return all
}

// nodeMetrics returns the state of the nodes of the cluster, for the metrics.
func (d *daemon) nodeMetrics() metrics.Cluster {
	state := metrics.Cluster{UncoveredSlots: d.nodes.UnservedSlots()}
	for _, n := range d.nodes.Nodes() {
		state.Nodes = append(state.Nodes, metrics.Node{Address: n.Addr(), Up: n.Err == nil, Clients: n.Clients})
	}
	return state
}

// forEachUpstream calls a function for the upstream or, if it is a cluster, for each of its nodes.
// It returns all errors.
func (d *daemon) forEachUpstream(call func(*upstream.Upstream) error) error {
	switch {
	case d.nodes != nil:
		return d.nodes.ForEach(call)
	case d.upstream != nil:
		return call(d.upstream)
	}
	return nil
}

// applyToUpstream applies the settings of the upstream.
func (d *daemon) applyToUpstream(cfg conf.Config) error {
	return d.forEachUpstream(func(up *upstream.Upstream) error {
		return up.Apply(serverURL(cfg.Upstream), cfg.UpstreamTimeout)
	})
}

// openAnyNode returns an upstream for a node of the cluster that answers, or else for the first
// node that the configuration names.
func openAnyNode(ctx context.Context, cfg conf.Config, id string, certificates *certs.Certificates) (*upstream.Upstream, error) {
	named, _, err := conf.ReadCluster(cfg.Upstream)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	up, err := newNode(cfg, id, certificates, slog.New(slog.DiscardHandler), func() {})
	if err != nil {
		return nil, err
	}
	for _, addr := range named.Seeds {
		up.MoveTo("", addr)
		if _, err := up.NodeTable(ctx); err == nil {
			return up, nil
		}
	}
	up.MoveTo("", named.Seeds[0])
	return up, nil
}
