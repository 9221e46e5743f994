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

// refuseSelf refuses a configuration by which the proxy that listens on the address would
// be its own upstream or master.
func refuseSelf(ctx context.Context, cfg conf.Config, listen string) error {
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
	for _, master := range cfg.Masters {
		check("master", master)
	}
	return errors.Join(all...)
}

// Loops are the servers of a configuration that are the proxy itself, or lead back to it, or past
// it. doubt is what of that cannot be known; empty: nothing.
func Loops(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) (found []string, doubt string) {
	if err := refuseSelf(ctx, cfg, cfg.Listen); err != nil {
		found = strings.Split(err.Error(), "\n")
	}
	why, doubt := whyUnused(ctx, cfg, certificates)
	if why != "" {
		found = append(found, why)
	}
	return found, doubt
}

// hostPort is where a URL of the configuration leads, or empty for a socket.
func hostPort(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme == "unix" || u.Hostname() == "" {
		return ""
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "6379"))
}
