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

// Heard is how long after its last announcement a proxy counts as living.
const Heard = 3 * time.Second

// followsMark is at the end of the ID of a proxy that follows when the masters are changed; before
// it is the protocol, from 2 on.
const followsMark = "-1"

// proxyProtocol is the number of what this version does together with other proxies, beside
// marker.Protocol for what it leaves on masters. Number 3 renews the lease of a move.
const proxyProtocol = 3

// newID is an ID for a proxy of that protocol.
func newID(protocol int) string { return rand.Text() + "." + strconv.Itoa(protocol) + followsMark }

// Protocol is the number of what the proxy does on masters; 0 where it does not know that masters
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

// Proxy is what one announced on a master. Majorities of different numbers of masters need not
// share one, and a proxy without the guard trusts masters that forgot: so each compares what the
// others announce with its own.
type Proxy struct {
	// ID is that of one process alone.
	ID string
	// Announced and First are when it did so last and first, by the master's clock.
	Announced, First time.Duration
	// Masters is how many it has; Guards is whether its guard is on.
	Masters int
	Guards  bool
	// Servers distinguishes sets of masters: "-" where it has not reached all of them.
	Servers string
	// ClockSince and At are between which moments of the master's clock this proxy found it
	// to fit; zero: it does not know.
	ClockSince, At time.Duration
	// Settings is a hash of what decides which key is which lock; empty: it grants none.
	Settings string
	// Moves is the era of the masters in which it moves the locks; zero: in none.
	Moves int
	// Longest is the longest TTL in use that it knows of, Name what operators call it.
	Longest time.Duration
	Name    string
}

// Announcement is the part of it that the proxy writes.
func (p Proxy) Announcement() string {
	guards := 0
	if p.Guards {
		guards = 1
	}
	return fmt.Sprintf("%d %d %s %d %d %s %d %d %s", p.Masters, guards, p.Servers, p.ClockSince.Microseconds(), p.At.Microseconds(), p.Settings,
		p.Moves, p.Longest.Milliseconds(), p.Name)
}

// parseProxy reads an entry. ok is false for what no proxy of this version wrote; when it was
// written is known all the same.
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
		ClockSince: time.Duration(n[5]) * time.Microsecond, At: time.Duration(n[6]) * time.Microsecond, Settings: parts[7], Moves: moves,
		Longest: time.Duration(longest) * time.Millisecond, Name: more[2],
	}, true
}

// Disagreement is what another proxy has differently, or nothing.
func (p Proxy) Disagreement(with Proxy) string {
	switch {
	case p.Protocol() != with.Protocol():
		return fmt.Sprintf("proxies of two versions run (protocols %d and %d on the masters): upgrade the others; until then neither the locks can be moved nor the masters changed",
			min(p.Protocol(), with.Protocol()), max(p.Protocol(), with.Protocol()))
	case p.Masters != with.Masters:
		return fmt.Sprintf("another proxy has %d masters, not %d: their majorities need not overlap", with.Masters, p.Masters)
	case p.Guards && !with.Guards:
		return "another proxy runs without the guard: it trusts masters that forgot"
	case p.Settings != with.Settings && p.Guards == with.Guards && p.Settings != "" && with.Settings != "":
		return "another proxy has other settings of what is a lock (lock-keys, lock-tags, key-prefix): the masters vote for one of both"
	case p.Servers != with.Servers && p.Servers != noServers && with.Servers != noServers:
		return "another proxy has other masters: their majorities need not overlap"
	default:
		return ""
	}
}

// Hinders returns why neither the masters can be changed nor the locks be moved beside another
// proxy, or nothing.
func (p Proxy) Hinders(with Proxy) string {
	switch {
	case with.Protocol() < p.Protocol():
		return "another proxy on the masters is of an earlier version: upgrade it, or stop it"
	case !with.Guards:
		return "another proxy on the masters runs without the guard: give it the guard, or stop it"
	case p.Settings != with.Settings && p.Settings != "" && with.Settings != "":
		return "another proxy on the masters has other settings of what is a lock (lock-keys, lock-tags, key-prefix): give all the same"
	default:
		return ""
	}
}

// disagreements are those among several proxies: each once, and not also as the other sees it.
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

// noServers is the list of a proxy that has not reached all its masters.
const noServers = "-"
