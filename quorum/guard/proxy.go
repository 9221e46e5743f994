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

// ProxyTimeout is how long a proxy counts as running after its last announcement.
const ProxyTimeout = 3 * time.Second

// followsMark ends the ID of a proxy that can follow a change of the masters. The number of its
// protocol precedes it, from 2 on.
const followsMark = "-1"

// proxyProtocol is the number of this version's cooperation with other proxies, marker.Protocol the
// number of its texts on masters. From number 3 on, proxies renew the lease of a move.
const proxyProtocol = 3

// newID returns a new ID for a proxy of this protocol.
func newID(protocol int) string { return rand.Text() + "." + strconv.Itoa(protocol) + followsMark }

// Protocol returns the number of the proxy's protocol, or 0 if the proxy does not know that masters
// can be changed.
func (p Proxy) Protocol() int {
	id, knows := strings.CutSuffix(p.ID, followsMark)
	if !knows {
		return 0
	}
	_, number, _ := strings.Cut(id, ".")
	n, _ := strconv.Atoi(number)
	return max(1, n)
}

// Proxy is a proxy's announcement on a master. Majorities of different numbers of masters need not
// share one, and a proxy without a guard trusts masters that lost data. So each proxy compares the
// other announcements with its own.
type Proxy struct {
	// ID is unique to a process.
	ID string
	// Announced and First are the times of the last and the first announcement, by the master's
	// clock.
	Announced, First time.Duration
	// Masters is the number of the proxy's masters. Guards reports whether its guard is on.
	Masters int
	Guards  bool
	// Servers is a hash of the proxy's masters; "-" if it has not reached all of them.
	Servers string
	// ClockSince and At are the moments of the master's clock between which this proxy found it to
	// fit; zero if unknown.
	ClockSince, At time.Duration
	// Settings is a hash of the settings that decide which keys are locks; empty if the proxy
	// grants no locks.
	Settings string
	// Moves is the era in which the proxy moves the locks; zero if it moves none.
	Moves int
	// Longest is the longest TTL in use that the proxy knows. Name is the operators' name for the
	// proxy.
	Longest time.Duration
	Name    string
}

// Announcement returns the part of the entry that the proxy writes.
func (p Proxy) Announcement() string {
	guards := 0
	if p.Guards {
		guards = 1
	}
	return fmt.Sprintf("%d %d %s %d %d %s %d %d %s",
		p.Masters, guards, p.Servers, p.ClockSince.Microseconds(), p.At.Microseconds(), p.Settings,
		p.Moves, p.Longest.Milliseconds(), p.Name)
}

// parseProxy parses an entry. ok is false if no proxy of this version wrote it; the result still
// has the time of the announcement.
func parseProxy(id, entry string) (p Proxy, ok bool) {
	parts := strings.Split(entry, " ")
	var more [3]string
	copy(more[:], parts[min(len(parts), 8):])
	moves, _ := strconv.Atoi(more[0])
	longest, _ := strconv.ParseInt(more[1], 10, 64)
	var n [7]int64
	n[0], _ = strconv.ParseInt(parts[0], 10, 64)
	unread := Proxy{ID: id, Announced: time.Duration(n[0]) * time.Millisecond}
	if len(parts) < 8 {
		return unread, false
	}
	for i, text := range parts[:7] {
		var err error
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil && i != 4 {
			return unread, false
		}
	}
	return Proxy{
		ID: id, Announced: time.Duration(n[0]) * time.Millisecond, First: time.Duration(n[1]) * time.Millisecond,
		Masters: int(n[2]), Guards: n[3] == 1, Servers: parts[4],
		ClockSince: time.Duration(n[5]) * time.Microsecond, At: time.Duration(n[6]) * time.Microsecond,
		Settings: parts[7], Moves: moves,
		Longest: time.Duration(longest) * time.Millisecond, Name: more[2],
	}, true
}

// Disagreement returns the difference to another proxy, or an empty text.
func (p Proxy) Disagreement(with Proxy) string {
	switch {
	case p.Protocol() != with.Protocol():
		return fmt.Sprintf("proxies of two versions are running (protocols %d and %d on the masters): "+
			"upgrade the older ones; until then the locks cannot be moved, nor the masters changed",
			min(p.Protocol(), with.Protocol()), max(p.Protocol(), with.Protocol()))
	case p.Masters != with.Masters:
		return fmt.Sprintf("another proxy has %d masters, not %d: their majorities need not overlap",
			with.Masters, p.Masters)
	case p.Guards && !with.Guards:
		return "another proxy runs without the guard: it trusts masters that lost data"
	case p.Settings != with.Settings && p.Guards == with.Guards && p.Settings != "" && with.Settings != "":
		return "another proxy has different lock settings (lock-keys, lock-tags, key-prefix): " +
			"the masters vote for only one of the two"
	case p.Servers != with.Servers && p.Servers != noServers && with.Servers != noServers:
		return "another proxy has different masters: their majorities need not overlap"
	default:
		return ""
	}
}

// Prevents returns why another proxy prevents a change of the masters or a move of the locks, or an
// empty text.
func (p Proxy) Prevents(with Proxy) string {
	switch {
	case with.Protocol() < p.Protocol():
		return "another proxy on the masters has an earlier version; upgrade or stop it"
	case !with.Guards:
		return "another proxy on the masters runs without the guard; enable its guard, or stop it"
	case p.Settings != with.Settings && p.Settings != "" && with.Settings != "":
		return "another proxy on the masters has different lock settings (lock-keys, lock-tags, key-prefix); " +
			"use the same on all proxies"
	default:
		return ""
	}
}

// disagreements returns the differences between several proxies, each once and in one direction
// only.
func disagreements(all []Proxy) []string {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Proxy) int { return cmp.Compare(a.Masters, b.Masters) })
	var found []string
	for i, p := range all {
		for _, with := range all[i+1:] {
			text := cmp.Or(p.Disagreement(with), with.Disagreement(p))
			if text != "" && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	return found
}

// noServers stands for the hash of a proxy that has not reached all its masters.
const noServers = "-"
