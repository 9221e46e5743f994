package guard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// Proxies that share masters but have different settings endanger each other's locks. So each proxy
// announces itself on each master once per heartbeat; see Proxy.

// serversHash returns a hash of the run_ids of the set's servers, because proxies may know the same
// servers by different addresses.
func (s *Set) serversHash() string {
	var ids []string
	for _, g := range s.guards {
		g.mu.Lock()
		id := g.runID
		g.mu.Unlock()
		if id == "" || id == NotReported {
			return noServers
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, " ")))
	return hex.EncodeToString(sum[:8])
}

// announce announces this proxy on the master, and reads the other proxies' announcements.
func (g *Guard) announce(ctx context.Context) error {
	if g.set.eras.isOver() {
		return nil // the votes of this set do not count any more
	}
	own := g.set.ownEntry()
	g.mu.Lock()
	if !g.fitted.IsZero() && (g.step.At.IsZero() || g.step.Judged) && g.suspicion.nonce == "" {
		own.ClockSince, own.At = g.clock.Since(), g.fitted.ServerTime
	}
	g.mu.Unlock()
	parts, err := runTexts(ctx, g.Conn, 2, 2, script.Announce, own.ID, own.Announcement(), marker.Millis(ProxyTimeout))
	if err != nil {
		return err
	}
	g.noteProxies(own, parts[2:])
	return nil
}

// noteProxies reads the entries of all proxies. An unreadable entry is from an earlier version.
func (g *Guard) noteProxies(own Proxy, entries []string) {
	var all, others []Proxy
	for ; len(entries) > 0; entries = entries[2:] {
		p, _ := parseProxy(entries[0], entries[1])
		if all = append(all, p); p.ID == own.ID {
			own.First = p.First
		} else {
			others = append(others, p)
		}
	}
	g.set.eras.noteMovers(g.index, all, time.Now())
	g.mu.Lock()
	g.proxies = others
	for _, text := range g.lastingDifferences(own, time.Now()) {
		g.set.warnDifference(text)
	}
	g.mu.Unlock()
}

// otherProxies returns the other proxies that enough masters list.
func (s *Set) otherProxies() []Proxy {
	var lists [][]Proxy
	for _, g := range s.guards {
		if !g.IsDown() {
			g.mu.Lock()
			lists = append(lists, g.proxies)
			g.mu.Unlock()
		}
	}
	return confirmedProxies(lists)
}

// Peers returns the IDs of the other proxies that enough masters list.
func (s *Set) Peers() (ids []string) {
	for _, p := range s.otherProxies() {
		ids = append(ids, p.ID)
	}
	return ids
}

// changeObstacle returns the reason why another proxy prevents a change of the masters or a move of
// the locks, or nil.
func (s *Set) changeObstacle() error {
	own := s.ownEntry()
	for _, p := range s.otherProxies() {
		if why := own.Prevents(p); why != "" {
			return errors.New(why)
		}
	}
	return nil
}

func (s *Set) hasEarlierPeer() bool {
	return slices.ContainsFunc(s.otherProxies(), func(p Proxy) bool { return p.Protocol() < proxyProtocol })
}

// ownEntry returns this proxy's announcement, the same on all masters.
func (s *Set) ownEntry() Proxy {
	return Proxy{
		ID: s.id, Masters: len(s.guards), Guards: !s.off, Servers: s.serversHash(), Settings: s.rules.digest(),
		Moves: s.moves(), Longest: s.maxTTLInUse.Seen(), Name: s.name(),
	}
}

// disagreeFor is how long a difference must last before it is logged. While a master restarts, the
// masters' lists differ.
const disagreeFor = 4 * Heartbeat

// lastingDifferences records since when other proxies differ, and returns the differences that have
// lasted long enough.
func (g *Guard) lastingDifferences(own Proxy, now time.Time) (lasts []string) {
	found := map[string]time.Time{}
	for _, p := range g.proxies {
		text := own.Disagreement(p)
		if text == "" {
			continue
		}
		if found[text] = cmp.Or(g.differs[text], now); now.Sub(found[text]) >= disagreeFor {
			lasts = append(lasts, text)
		}
	}
	g.differs = found
	return lasts
}

func (s *Set) warnDifference(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.warned[text] {
		s.warned[text] = true
		s.log.Warn("this proxy and another proxy do not match", "cause", text)
	}
}
