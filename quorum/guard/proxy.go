package guard

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ProxyTimeout is the time for which a proxy counts as running after its last announcement.
const ProxyTimeout = 3 * time.Second

// followSuffix ends the ID of a proxy that can follow a change of the masters. From protocol 2 on,
// the number of the protocol precedes it.
const followSuffix = "-1"

// proxyProtocol numbers the rules by which proxies of this version cooperate. marker.Protocol
// numbers the format of their data on masters. From proxyProtocol 3 on, proxies renew the lease of
// a move.
const proxyProtocol = 3

// newID returns a new ID for a proxy of this protocol.
func newID(protocol int) string { return rand.Text() + "." + strconv.Itoa(protocol) + followSuffix }

// Protocol returns the number of the proxy's protocol, or 0 if the proxy does not know that masters
// can be changed.
func (p Proxy) Protocol() int {
	id, ok := strings.CutSuffix(p.ID, followSuffix)
	if !ok {
		return 0
	}
	_, number, _ := strings.Cut(id, ".")
	n, _ := strconv.Atoi(number)
	return max(1, n)
}

// Proxy holds a proxy's announcement on a master. Majorities of sets of different sizes need not
// share a master, and a proxy without a guard trusts masters that lost data. So each proxy compares
// the announcements of other proxies with its own.
type Proxy struct {
	// ID is unique to a process.
	ID string
	// LastAnnounced and FirstAnnounced are the times of the last and the first announcement, by the
	// master's clock.
	LastAnnounced, FirstAnnounced time.Duration
	// Masters is the number of the proxy's masters. GuardOn reports whether its guard is on.
	Masters int
	GuardOn bool
	// Servers is a hash of the proxy's masters; "-" if it has not reached all of them.
	Servers string
	// ClockFitStart and ClockFitEnd are the times, by the master's clock, between which the
	// proxy found that this clock fitted; zero if unknown.
	ClockFitStart, ClockFitEnd time.Duration
	// Settings is a hash of the settings that decide which keys are locks; empty if the proxy
	// grants no locks.
	Settings string
	// MoveEra is the era in which the proxy moves the locks; zero if it moves none.
	MoveEra int
	// LongestTTL is the longest TTL in use that the proxy knows. Name is the operators' name for
	// the proxy.
	LongestTTL time.Duration
	Name       string
	// Addresses is a hash of the addresses by which the proxy knows its masters; empty if the proxy
	// is of an earlier version, which does not announce it. An era names its masters by these addresses.
	Addresses string
}

// Announcement returns the proxy's part of its entry. The script Announce adds the times.
func (p Proxy) Announcement() string {
	guards := 0
	if p.GuardOn {
		guards = 1
	}
	return fmt.Sprintf("%d %d %s %d %d %s %d %d %s %s",
		p.Masters, guards, p.Servers, p.ClockFitStart.Microseconds(), p.ClockFitEnd.Microseconds(), p.Settings,
		p.MoveEra, p.LongestTTL.Milliseconds(), p.Name, p.Addresses)
}

// parseProxy parses an entry. ok is false if the entry does not have this version's format. The
// result then has only the ID and the time of the announcement.
func parseProxy(id, entry string) (p Proxy, ok bool) {
	parts := strings.Split(entry, " ")
	var optionalFields [4]string
	copy(optionalFields[:], parts[min(len(parts), 8):])
	moves, _ := strconv.Atoi(optionalFields[0])
	longestTTL, _ := strconv.ParseInt(optionalFields[1], 10, 64)
	var n [7]int64
	n[0], _ = strconv.ParseInt(parts[0], 10, 64)
	incomplete := Proxy{ID: id, LastAnnounced: time.Duration(n[0]) * time.Millisecond}
	if len(parts) < 8 {
		return incomplete, false
	}
	for i, text := range parts[:7] {
		var err error
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil && i != 4 {
			return incomplete, false
		}
	}
	return Proxy{
		ID: id, LastAnnounced: time.Duration(n[0]) * time.Millisecond, FirstAnnounced: time.Duration(n[1]) * time.Millisecond,
		Masters: int(n[2]), GuardOn: n[3] == 1, Servers: parts[4],
		ClockFitStart: time.Duration(n[5]) * time.Microsecond, ClockFitEnd: time.Duration(n[6]) * time.Microsecond,
		Settings: parts[7], MoveEra: moves,
		LongestTTL: time.Duration(longestTTL) * time.Millisecond, Name: optionalFields[2], Addresses: optionalFields[3],
	}, true
}

// DifferenceTo describes the difference to another proxy; empty if there is none.
func (p Proxy) DifferenceTo(other Proxy) string {
	switch {
	case p.Protocol() != other.Protocol():
		return fmt.Sprintf("proxies of two versions are running (protocols %d and %d on the masters): "+
			"locks cannot be moved and masters cannot be changed; upgrade the older proxies",
			min(p.Protocol(), other.Protocol()), max(p.Protocol(), other.Protocol()))
	case p.Masters != other.Masters:
		return fmt.Sprintf("another proxy has %d masters, not %d: their majorities need not overlap",
			other.Masters, p.Masters)
	case p.GuardOn && !other.GuardOn:
		return "another proxy runs without the guard: it trusts masters that lost data"
	case p.Settings != other.Settings && p.GuardOn == other.GuardOn && p.Settings != "" && other.Settings != "":
		return "another proxy has different lock settings (lock-keys, lock-tags, key-prefix): " +
			"the masters vote for only one of the two"
	case p.Servers != other.Servers && p.Servers != unknownServers && other.Servers != unknownServers:
		return "another proxy has different masters: their majorities need not overlap"
	default:
		return ""
	}
}

// DescribeObstacle describes how another proxy prevents a change of the masters or a move of the
// locks; empty if it does not.
func (p Proxy) DescribeObstacle(other Proxy) string {
	switch {
	case other.Protocol() < p.Protocol():
		return "another proxy on the masters has an earlier version; upgrade or stop it"
	case !other.GuardOn:
		return "another proxy on the masters runs without the guard; enable its guard, or stop it"
	case p.Settings != other.Settings && p.Settings != "" && other.Settings != "":
		return "another proxy on the masters has different lock settings (lock-keys, lock-tags, key-prefix); " +
			"use the same on all proxies"
	case p.Servers == other.Servers && p.Servers != unknownServers && p.Addresses != other.Addresses && other.Addresses != "":
		return "another proxy has the same masters by other addresses; use the same addresses on all proxies"
	default:
		return ""
	}
}

// proxyDifferences returns the differences between several proxies, each once and in one direction
// only.
func proxyDifferences(proxies []Proxy) []string {
	proxies = slices.Clone(proxies)
	slices.SortFunc(proxies, func(a, b Proxy) int { return cmp.Compare(a.Masters, b.Masters) })
	var differences []string
	for i, p := range proxies {
		for _, other := range proxies[i+1:] {
			text := cmp.Or(p.DifferenceTo(other), other.DifferenceTo(p))
			if text != "" && !slices.Contains(differences, text) {
				differences = append(differences, text)
			}
		}
	}
	return differences
}

// unknownServers replaces the hash of the servers if the proxy has not reached all its masters.
const unknownServers = "-"
