package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"redlock-proxy/commands/move"
	"redlock-proxy/commands/server"
	"redlock-proxy/conf"
	"redlock-proxy/internal/certs"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum/place"
)

// CanMove reports whether the locks of a proxy can be moved from its upstream to the masters and
// back.
func CanMove(cfg conf.Config) bool { return cfg.Upstream != "" && HasPlaces(cfg) }

// newUpstream is nil for a lock server.
func newUpstream(cfg conf.Config, id string, certificates *certs.Certificates, log *slog.Logger) (*upstream.Upstream, error) {
	if cfg.Upstream == "" {
		return nil, nil
	}
	up, err := openUpstream(cfg, log)
	if err == nil {
		up.Identify(id)
		up.Secure(certificates.Dialing)
		if len(cfg.LockKeys) > 0 {
			up.RefuseClusters()
		}
	}
	return up, err
}

// LockKeysAtUpstream returns how many lock keys the upstream holds, and one of them. more is set
// where it has more keys than are looked at.
func LockKeysAtUpstream(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) (n int, first string, more bool, err error) {
	up, err := newUpstream(cfg, "", certificates, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, "", false, err
	}
	defer up.Close()
	conn, err := up.Single(ctx)
	if err != nil {
		return 0, "", false, err
	}
	defer conn.Close()
	return move.CountAt(ctx, conn, cfg.LockKeys)
}

// Record is what the upstream keeps of where the locks are; nil: they cannot be moved. end closes
// the connections to it.
func Record(cfg conf.Config, certificates *certs.Certificates) (record place.Record, end func(), err error) {
	up, err := newUpstream(cfg, "", certificates, slog.New(slog.DiscardHandler))
	if err != nil || up == nil {
		return nil, func() {}, err
	}
	return recordAt(up, cfg), up.Close, nil
}

func recordAt(up *upstream.Upstream, cfg conf.Config) place.Record {
	if !CanMove(cfg) {
		return nil
	}
	return up.Record(cfg.LockKeys)
}

// openUpstream takes the URL of the upstream, or of the Sentinels that know where it is.
func openUpstream(cfg conf.Config, log *slog.Logger) (*upstream.Upstream, error) {
	s, named, err := conf.ReadSentinel(cfg.Upstream)
	switch {
	case err != nil:
		return nil, fmt.Errorf("upstream: %w", err)
	case !named:
		return upstream.New(cfg.Upstream, cfg.UpstreamTimeout, log)
	}
	sentinels := upstream.Sentinels{Master: s.Master, Addrs: s.Addrs, Username: s.Username, Password: s.Password}
	return upstream.NewFollowing(s.At(s.Addrs[0]), sentinels, cfg.UpstreamTimeout, log)
}

// Locate is the URL of the upstream as of now, of one that Sentinels know, too.
func Locate(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) (url string, err error) {
	s, named, err := conf.ReadSentinel(cfg.Upstream)
	if !named || err != nil {
		return cfg.Upstream, err
	}
	up, err := newUpstream(cfg, "", certificates, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer up.Close()
	addr, err := up.Locate(ctx)
	return s.At(addr), err
}

// serverURL is the URL of the upstream, of which Sentinels may have to say where it is.
func serverURL(text string) string {
	if s, named, err := conf.ReadSentinel(text); named && err == nil {
		return s.At(s.Addrs[0])
	}
	return text
}

// firstProbe looks for the upstream. The proxy is being served by then, since an upstream that
// leads back to it says so only when its question is answered here. One that must not be used ends
// the proxy.
func firstProbe(ctx context.Context, up *upstream.Upstream) error {
	up.Probe(ctx)
	switch name, err := up.Status(); {
	case errors.Is(err, server.ErrLoop):
		return fmt.Errorf("upstream: %s leads back to this proxy", name)
	case errors.Is(err, upstream.ErrCluster), errors.Is(err, upstream.ErrMaster):
		return fmt.Errorf("upstream: %s: %w", name, err)
	}
	return nil
}

// whyUnused is why the upstream must not be used: it leads back to the proxy over others that are
// running, and does not answer for a Redis, or it leads clients elsewhere. It is empty where
// nothing is known against it. doubt says that the latter is not known.
func whyUnused(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) (why, doubt string) {
	up, err := newUpstream(cfg, newID(), certificates, slog.New(slog.DiscardHandler))
	if err != nil || up == nil {
		return "", ""
	}
	defer up.Close()
	up.Probe(ctx)
	switch name, err := up.Status(); {
	case errors.Is(err, server.ErrLoop):
		return "upstream: it leads back to itself over other proxies", ""
	case errors.Is(err, upstream.ErrCluster):
		return "upstream " + name + ": " + err.Error(), ""
	case up.HidesMode():
		return "", "upstream " + name + ": whether it is a node of a Redis Cluster, which must not be used, is not known: it does not say without a login"
	}
	return "", ""
}
