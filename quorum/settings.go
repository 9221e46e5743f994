package quorum

import (
	"errors"
	"net/url"
	"time"

	"redlock-proxy/quorum/master"
)

// LiveSettings holds the parts of the [Options] that may change while a cluster runs.
type LiveSettings struct {
	// Masters is Options.Masters. Only passwords may differ, and no password may be removed. New
	// connections use the new passwords.
	Masters []string
	// MaxTTL is Options.MaxTTL. It only grows: locks that were granted before a decrease may still
	// be held.
	MaxTTL time.Duration
}

var errDifferentMasters = errors.New("the configured masters differ from the masters in use")

// Apply puts settings into effect. The caller must apply a longer MaxTTL before clients may request
// longer TTLs. Apply is safe for concurrent use.
func (c *Cluster) Apply(s LiveSettings) error {
	set := c.masterSet()
	if len(s.Masters) != len(set.masters) {
		return errDifferentMasters
	}
	passwords := make([]string, len(s.Masters))
	for i, u := range s.Masters {
		parsed, err := url.Parse(u)
		if err != nil || master.NameFromURL(u) != set.masters[i].Name() {
			return errDifferentMasters
		}
		passwords[i], _ = parsed.User.Password()
	}
	for i, m := range set.masters {
		if passwords[i] != "" {
			m.SetPassword(passwords[i])
		}
	}
	set.guards.RaiseMaxTTL(s.MaxTTL)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latestURLs = s.Masters
	return nil
}
