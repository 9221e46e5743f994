package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"redlock-proxy/certs"
	"redlock-proxy/commands"
	"redlock-proxy/conf"
	"redlock-proxy/loop"
)

// notItself refuses a configuration by which the proxy that listens on the address would
// be its own upstream, master or old Redis.
func notItself(ctx context.Context, cfg conf.Config, listen string) error {
	here := loop.Here()
	var all []error
	check := func(setting, target string) {
		if at := hostPort(target); at != "" {
			all = append(all, here.Check(ctx, setting, at, listen))
		}
	}
	if sentinels, named, _ := conf.ReadSentinel(cfg.Upstream); named {
		for _, addr := range sentinels.Addrs {
			all = append(all, here.Check(ctx, "upstream", addr, listen))
		}
	} else {
		check("upstream", cfg.Upstream)
	}
	check("legacy-lock", cfg.LegacyLock)
	for _, master := range cfg.Masters {
		check("master", master)
	}
	return errors.Join(all...)
}

// loops are the servers of a configuration that are the proxy itself, or lead back to it.
func loops(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) (found []string) {
	if err := notItself(ctx, cfg, cfg.Listen); err != nil {
		found = strings.Split(err.Error(), "\n")
	}
	if leadsToItself(ctx, cfg, certificates) {
		found = append(found, "upstream: it leads back to itself over other proxies")
	}
	return found
}

// hostPort is where a URL of the configuration leads, or empty for a socket.
func hostPort(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme == "unix" || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// leadsToItself reports whether the upstream stands behind itself, over proxies that are
// running: then it does not answer for a Redis.
func leadsToItself(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) bool {
	upstream, err := newUpstream(cfg, newID(), certificates, slog.New(slog.DiscardHandler))
	if err != nil || upstream == nil {
		return false
	}
	defer upstream.Close()
	upstream.Probe(ctx)
	_, err = upstream.Status()
	return errors.Is(err, commands.ErrLoop)
}
