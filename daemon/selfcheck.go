package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	"redlock-proxy/conf"
	"redlock-proxy/daemon/loop"
	"redlock-proxy/internal/certs"
)

// checkNotSelf returns an error if the proxy would be its own upstream or master.
func checkNotSelf(ctx context.Context, cfg conf.Config, listen string) error {
	machine := loop.ThisMachine()
	var errs []error
	check := func(setting, target string) {
		if at := hostPort(target); at != "" {
			errs = append(errs, machine.Check(ctx, setting, at, listen))
		}
	}
	if sentinels, named, _ := conf.ReadSentinel(cfg.Upstream); named {
		for _, addr := range sentinels.Addrs {
			errs = append(errs, machine.Check(ctx, "upstream", addr, listen))
		}
	} else if named, isCluster, _ := conf.ReadCluster(cfg.Upstream); isCluster {
		for _, addr := range named.Seeds {
			errs = append(errs, machine.Check(ctx, "upstream", addr, listen))
		}
	} else {
		check("upstream", cfg.Upstream)
	}
	for _, master := range cfg.Masters {
		check("master", master)
	}
	return errors.Join(errs...)
}

// FindLoops describes the servers of a configuration that must not be used: the proxy itself,
// another redlock-proxy, or a server that redirects clients past the proxy. unverified is a warning
// about the upstream, or empty.
func FindLoops(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) (loops []string, unverified string) {
	if err := checkNotSelf(ctx, cfg, cfg.Listen); err != nil {
		loops = strings.Split(err.Error(), "\n")
	}
	problem, unverified := upstreamProblem(ctx, cfg, certificates)
	if problem != "" {
		loops = append(loops, problem)
	}
	return loops, unverified
}

// hostPort returns the address in a URL of the configuration, or an empty string for a socket.
func hostPort(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme == "unix" || u.Hostname() == "" {
		return ""
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "6379"))
}
