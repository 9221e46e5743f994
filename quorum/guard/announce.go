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

// Proxies that share masters but not their settings endanger each other's locks. So each announces
// itself on each master once a heartbeat; see Proxy.

// servers is a hash of the servers that the set has reached: proxies may know the same ones by
// different addresses.
func (s *Set) servers() string {
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

// announce makes this proxy known on the master, and so to the other proxies, and learns of those.
func (g *Guard) announce(ctx context.Context) error {
	if g.set.eras.isOver() {
		return nil // it counts no votes any more
	}
	own := g.set.own()
	g.mu.Lock()
	if !g.fitted.IsZero() && (g.step.At.IsZero() || g.step.Judged) && g.doubt.nonce == "" {
		own.ClockSince, own.At = g.clock.Since(), g.fitted.ServerTime
	}
	g.mu.Unlock()
	parts, err := ask(ctx, g.Conn, 2, 2, script.Announce, own.ID, own.Announcement(), marker.Millis(Heard))
	if err != nil {
		return err
	}
	g.noteProxies(own, parts[2:])
	return nil
}

// noteProxies takes the entries of all proxies. What cannot be read is of an earlier version.
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
	g.set.eras.heard(g.index, all, time.Now())
	g.mu.Lock()
	g.proxies = others
	for _, text := range g.differing(own, time.Now()) {
		g.set.warn(text)
	}
	g.mu.Unlock()
}

// others are the other proxies that count.
func (s *Set) others() []Proxy {
	var lists [][]Proxy
	for _, g := range s.guards {
		if !g.IsDown() {
			g.mu.Lock()
			lists = append(lists, g.proxies)
			g.mu.Unlock()
		}
	}
	return counted(lists)
}

// Peers are the IDs of the other proxies that count.
func (s *Set) Peers() (ids []string) {
	for _, p := range s.others() {
		ids = append(ids, p.ID)
	}
	return ids
}

// hindrance is why neither the masters can be changed nor the locks be moved beside other proxies,
// or nil.
func (s *Set) hindrance() error {
	own := s.own()
	for _, p := range s.others() {
		if why := own.Hinders(p); why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// isBesideEarlier reports whether a proxy of an earlier version counts.
func (s *Set) isBesideEarlier() bool {
	return slices.ContainsFunc(s.others(), func(p Proxy) bool { return p.Protocol() < proxyProtocol })
}

// own is what this proxy announces of itself on all masters.
func (s *Set) own() Proxy {
	return Proxy{ID: s.id, Masters: len(s.guards), Guards: !s.off, Servers: s.servers(), Settings: s.rules.digest(), Moves: s.moves(), Longest: s.longest.Seen(), Name: s.name()}
}

// disagreeFor is for how long another proxy must differ: while a master restarts, the lists do.
const disagreeFor = 4 * Heartbeat

// differing notes since when other proxies differ, and returns what lasts long enough.
func (g *Guard) differing(own Proxy, now time.Time) (lasts []string) {
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

// warn logs what is wrong, once.
func (s *Set) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.warned[text] {
		s.warned[text] = true
		s.log.Warn("other proxies differ", "how", text)
	}
}
