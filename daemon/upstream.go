package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"redlock-proxy/commands/move"
	"redlock-proxy/commands/server"
	"redlock-proxy/conf"
	"redlock-proxy/internal/certs"
	"redlock-proxy/proxy/nodes"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum/location"
)

// CanMove reports whether the locks of a proxy can be moved between upstream and masters.
func CanMove(cfg conf.Config) bool {
	return cfg.Upstream != "" && !cfg.HasCluster() && RecordsLocation(cfg)
}

// newUpstream returns the upstream, or nil for a lock server. For a cluster, it returns a node of
// the cluster.
func newUpstream(
	ctx context.Context, cfg conf.Config, id string, certificates *certs.Certificates, log *slog.Logger,
) (*upstream.Upstream, error) {
	switch {
	case cfg.Upstream == "":
		return nil, nil
	case cfg.HasCluster():
		return openAnyNode(ctx, cfg, id, certificates)
	}
	up, err := openUpstream(cfg, log)
	if err == nil {
		up.SetProxyID(id)
		up.SetTLS(certificates.ConfigureDial)
		if len(cfg.LockKeys) > 0 {
			up.RefuseClusters()
		}
	}
	return up, err
}

// LockKeysAtUpstream returns the number of lock keys at the upstream, and one of these keys. more
// is set if the upstream has more keys than the search reads.
func LockKeysAtUpstream(
	ctx context.Context, cfg conf.Config, certificates *certs.Certificates,
) (n int, firstKey string, more bool, err error) {
	up, err := newUpstream(ctx, cfg, "", certificates, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, "", false, err
	}
	defer up.Close()
	if !cfg.HasCluster() {
		return countLockKeys(ctx, up, cfg.LockKeys)
	}
	table, err := up.NodeTable(ctx)
	for _, node := range table.Nodes {
		if !node.IsMaster() || len(node.Slots) == 0 {
			continue
		}
		up.MoveTo(node.ID, node.Addr())
		count, key, hasMore, err := countLockKeys(ctx, up, cfg.LockKeys)
		if err != nil {
			return 0, "", false, err
		}
		n, firstKey, more = n+count, cmp.Or(firstKey, key), more || hasMore
	}
	return n, firstKey, more, err
}

// countLockKeys returns how many lock keys a server holds, and one of them.
func countLockKeys(ctx context.Context, up *upstream.Upstream, lockKeys []string) (n int, firstKey string, more bool, err error) {
	conn, err := up.OpenConn(ctx)
	if err != nil {
		return 0, "", false, err
	}
	defer conn.Close()
	return move.CountLockKeys(ctx, conn, lockKeys)
}

// LocationRecord returns the upstream's record of the location of the locks, or nil if the locks
// cannot be moved. end closes the connections to the upstream.
func LocationRecord(cfg conf.Config, certificates *certs.Certificates) (record location.Record, end func(), err error) {
	if !CanMove(cfg) {
		return nil, func() {}, nil
	}
	up, err := newUpstream(context.Background(), cfg, "", certificates, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, func() {}, err
	}
	return locationRecord(up, cfg), up.Close, nil
}

func locationRecord(up *upstream.Upstream, cfg conf.Config) location.Record {
	if !CanMove(cfg) {
		return nil
	}
	return up.Record(cfg.LockKeys)
}

// openUpstream returns the upstream at the URL, or at the address that Sentinels know.
func openUpstream(cfg conf.Config, log *slog.Logger) (*upstream.Upstream, error) {
	s, named, err := conf.ReadSentinel(cfg.Upstream)
	switch {
	case err != nil:
		return nil, fmt.Errorf("upstream: %w", err)
	case !named:
		return upstream.New(cfg.Upstream, cfg.UpstreamTimeout, log)
	}
	sentinels := upstream.Sentinels{MasterName: s.Master, Addrs: s.Addrs, Username: s.Username, Password: s.Password}
	return upstream.NewWithSentinels(s.URLAt(s.Addrs[0]), sentinels, cfg.UpstreamTimeout, log)
}

// LocateUpstream returns the current URL of the upstream. If Sentinels know its address, it asks
// them. For a cluster, it returns the URL of a node that answers.
func LocateUpstream(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) (url string, err error) {
	var urlAt func(addr string) string
	if s, named, _ := conf.ReadSentinel(cfg.Upstream); named {
		urlAt = s.URLAt
	} else if c, named, _ := conf.ReadCluster(cfg.Upstream); named {
		urlAt = c.URLAt
	} else {
		return cfg.Upstream, nil
	}
	up, err := newUpstream(ctx, cfg, "", certificates, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer up.Close()
	addr, err := up.Locate(ctx)
	return urlAt(addr), err
}

// serverURL returns the URL of the upstream. With Sentinels, the host is the first Sentinel; with a
// cluster, the host is the placeholder "node".
func serverURL(text string) string {
	if s, named, err := conf.ReadSentinel(text); named && err == nil {
		return s.URLAt(s.Addrs[0])
	}
	if c, named, err := conf.ReadCluster(text); named && err == nil {
		return c.URLAt("node")
	}
	return text
}

// runFirstProbe probes the upstream, and returns an error if the upstream must not be used. The
// proxy must already serve clients: if the upstream is the proxy itself, the proxy must answer the
// probe.
func runFirstProbe(ctx context.Context, up *upstream.Upstream) error {
	up.Probe(ctx)
	switch name, err := up.Status(); {
	case errors.Is(err, server.ErrLoop):
		return fmt.Errorf("upstream: %s leads back to this proxy; name another Redis", name)
	case errors.Is(err, upstream.ErrCluster), errors.Is(err, upstream.ErrNoCluster), errors.Is(err, upstream.ErrGrantsLocks):
		return fmt.Errorf("upstream: %s: %w", name, err)
	}
	return nil
}

// upstreamProblem returns the reason why the upstream must not be used. For example, it is a
// redlock-proxy, or a node of a cluster, which redirects clients. unverified is a warning: slots of
// the cluster are not served, or the proxy cannot tell whether the upstream is a node of a cluster.
// Both may be empty.
func upstreamProblem(
	ctx context.Context, cfg conf.Config, certificates *certs.Certificates,
) (problem, unverified string) {
	up, err := newUpstream(ctx, cfg, newID(), certificates, slog.New(slog.DiscardHandler))
	if err != nil || up == nil {
		return "", ""
	}
	defer up.Close()
	if cfg.HasCluster() {
		table, err := up.NodeTable(ctx)
		if err != nil {
			return "upstream " + up.Name() + ": " + err.Error(), ""
		}
		if left := table.UnservedSlots(); left > 0 {
			return "", fmt.Sprintf("upstream: %d of %d slots of the cluster are not served", left, nodes.SlotCount)
		}
	}
	up.Probe(ctx)
	switch name, err := up.Status(); {
	case errors.Is(err, upstream.ErrCluster), errors.Is(err, upstream.ErrNoCluster), errors.Is(err, upstream.ErrGrantsLocks):
		return "upstream " + name + ": " + err.Error(), ""
	case up.ModeUnknown():
		return "", "upstream " + name + ": cannot tell whether it is a node of a Redis Cluster, which must not be " +
			"the upstream: it requires a login"
	}
	return "", ""
}
