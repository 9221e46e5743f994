package guard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
)

// Each proxy announces itself on each master at least once per heartbeat; see Proxy.

// serversHash returns a hash of the run_ids of the set's servers, because proxies may know the same
// servers by different addresses.
func (s *Set) serversHash() string {
	var ids []string
	for _, g := range s.guards {
		g.mu.Lock()
		id := g.runID
		g.mu.Unlock()
		ids = append(ids, id)
	}
	return hashServers(ids)
}

// hashServers returns a hash of run_ids, or unknownServers if a run_id is unknown.
func hashServers(ids []string) string {
	if slices.Contains(ids, "") || slices.Contains(ids, NotReported) {
		return unknownServers
	}
	slices.Sort(ids)
	return reconfig.Hash([]string{strings.Join(ids, " ")})
}

// announce announces this proxy on the master, and reads the other proxies' announcements.
func (g *Guard) announce(ctx context.Context) error {
	if g.set.Reconfiguration() != nil {
		return nil // the votes of this set do not count any more
	}
	self := g.set.ownProxy()
	g.mu.Lock()
	if !g.lastFittingReading.IsZero() && (g.lastStep.At.IsZero() || g.lastStep.Judged) && g.suspicion.nonce == "" {
		self.ClockFitStart, self.ClockFitEnd = g.clock.first.ServerTime, g.lastFittingReading.ServerTime
	}
	g.mu.Unlock()
	parts, err := runTexts(ctx, g.Conn, 2, 2, script.Announce, self.ID, self.Announcement(), marker.FormatMillis(ProxyTimeout))
	if err != nil {
		return err
	}
	g.noteProxies(self, parts[2:])
	return nil
}

// EndAnnouncement removes this proxy's announcement from the master, if the proxy has not replaced
// this set by a later one. So the other proxies do not count it as running until ProxyTimeout. The
// caller must send the master no operation afterwards.
func (g *Guard) EndAnnouncement(ctx context.Context) error {
	if !g.set.opts.InUse() {
		return nil
	}
	_, err := runInt(ctx, g.Conn, script.EndAnnouncement, g.set.opts.ID)
	return err
}

// noteProxies reads the entries of all proxies. An entry that cannot be parsed comes from a proxy
// of an earlier version.
func (g *Guard) noteProxies(self Proxy, entries []string) {
	var proxies, otherProxies []Proxy
	for ; len(entries) > 0; entries = entries[2:] {
		p, _ := parseProxy(entries[0], entries[1])
		if proxies = append(proxies, p); p.ID != self.ID {
			otherProxies = append(otherProxies, p)
		}
	}
	g.set.eras.noteMovers(g.index, proxies, time.Now())
	g.mu.Lock()
	g.otherProxies = otherProxies
	for _, text := range g.lastingDifferences(self, time.Now()) {
		g.set.warnOnce(text, "this proxy and another proxy do not match", "cause", text)
	}
	g.mu.Unlock()
}

// otherProxies returns the other proxies that at least witnessQuorum masters list.
func (s *Set) otherProxies() []Proxy {
	var lists [][]Proxy
	for _, g := range s.guards {
		if !g.IsDown() {
			g.mu.Lock()
			lists = append(lists, g.otherProxies)
			g.mu.Unlock()
		}
	}
	return confirmedProxies(lists)
}

// PeerIDs returns the IDs of the other proxies that at least witnessQuorum masters list.
func (s *Set) PeerIDs() (ids []string) {
	for _, p := range s.otherProxies() {
		ids = append(ids, p.ID)
	}
	return ids
}

// checkChangeAllowed returns the reason why another proxy prevents a change of the masters or a
// move of the locks, or nil.
func (s *Set) checkChangeAllowed() error {
	self := s.ownProxy()
	for _, p := range s.otherProxies() {
		if reason := self.DescribeObstacle(p); reason != "" {
			return errors.New(reason)
		}
	}
	return nil
}

// HasEarlierProxy reports whether a proxy of an earlier protocol is running.
func (s *Set) HasEarlierProxy() bool {
	return slices.ContainsFunc(s.otherProxies(), func(p Proxy) bool { return p.Protocol() < proxyProtocol })
}

// ownProxy returns this proxy's announcement, the same on all masters.
func (s *Set) ownProxy() Proxy {
	return Proxy{
		ID: s.opts.ID, Masters: len(s.guards), GuardOn: !s.opts.Off, Servers: s.serversHash(), Settings: s.rules.settingsHash(),
		MoveEra: s.opts.MoveEra(), LongestTTL: s.maxTTLInUse.LargestRecord(), Name: s.opts.Name(),
		Addresses: reconfig.Hash(s.eras.names),
	}
}

// differenceDelay is the time that a difference must last before it is logged, because the masters'
// lists differ while a master restarts.
const differenceDelay = 4 * Heartbeat

// lastingDifferences updates the differences to other proxies, and returns the differences that
// have lasted long enough to be logged.
func (g *Guard) lastingDifferences(self Proxy, now time.Time) (differences []string) {
	since := map[string]time.Time{}
	for _, p := range g.otherProxies {
		text := self.DifferenceTo(p)
		if text == "" {
			continue
		}
		if since[text] = cmp.Or(g.differencesSince[text], now); now.Sub(since[text]) >= differenceDelay {
			differences = append(differences, text)
		}
	}
	g.differencesSince = since
	return differences
}
