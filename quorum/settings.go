package quorum

import (
	"errors"
	"net/url"
	"time"

	"redlock-proxy/quorum/master"
)

// Settings are what of the [Options] may change while a cluster runs.
type Settings struct {
	// Masters are the URLs of the Options. They may differ from them in passwords that were
	// replaced by others: these hold for connections that are made from now on.
	Masters []string
	// MaxTTL is that of the Options. It only ever grows: locks that were granted before a lower one
	// may still be held.
	MaxTTL time.Duration
}

var errOtherMasters = errors.New("quorum: other masters need ChangeMasters")

// Apply has settings hold from now on. Whoever lets clients ask for longer TTLs calls it before. It
// may be called at any time, by any goroutine.
func (c *Cluster) Apply(s Settings) error {
	g := c.now()
	if len(s.Masters) != len(g.masters) {
		return errOtherMasters
	}
	passwords := make([]string, len(s.Masters))
	for i, u := range s.Masters {
		parsed, err := url.Parse(u)
		if err != nil || master.NameIn(u) != g.masters[i].Name() {
			return errOtherMasters
		}
		passwords[i], _ = parsed.User.Password()
	}
	for i, m := range g.masters {
		if passwords[i] != "" {
			m.SetPassword(passwords[i])
		}
	}
	g.guards.RaiseMaxTTL(s.MaxTTL)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = s.Masters
	return nil
}
