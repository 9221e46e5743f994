package daemon

import (
	"strings"

	"redlock-proxy/conf"
	"redlock-proxy/internal/certs"
	"redlock-proxy/quorum/master"
)

// MasterAccess returns the settings for connections to the masters.
func MasterAccess(cfg conf.Config, certificates *certs.Certificates) master.Access {
	return master.Access{
		Timeout: cfg.MasterTimeout, TLS: certificates.ConfigureDial, TrialKey: cfg.KeyPrefix + trialKey(cfg.LockKeys),
	}
}

// UpstreamAccess does the same as MasterAccess, for the upstream.
func UpstreamAccess(cfg conf.Config, certificates *certs.Certificates) master.Access {
	return master.Access{Timeout: cfg.UpstreamTimeout, TLS: certificates.ConfigureDial, TrialKey: trialKey(cfg.LockKeys)}
}

// trialKey returns a key for trial writes that no client uses. If possible it matches a glob of
// lock-keys, since a user may have rights to lock keys only, or to other keys only.
func trialKey(lockKeys []string) string {
	name := "redlock-proxy:trial:" + newID()
	for _, glob := range lockKeys {
		if strings.Contains(glob, "*") && !strings.ContainsAny(glob, `?[\`) {
			return strings.ReplaceAll(glob, "*", name)
		}
	}
	return name
}
