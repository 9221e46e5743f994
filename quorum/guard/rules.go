package guard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"redlock-proxy/quorum/vote"
)

// What decides which key is which lock, and which masters there are, all proxies on a master must
// have alike. So it is kept on each master, written by the first proxy that a master votes for, and
// a master votes for no proxy that has it otherwise. Two majorities share a master: so there are
// never two rules by which locks are granted.

// rules are those kept on a master.
type rules struct {
	// settings are lines, each of a name and a value.
	settings string
	masters  []member
}

// member is one of the masters: the address by which the proxy that wrote it knows it, and the
// run_id that it had then.
type member struct{ name, runID string }

// memberLine is how the line of a member begins.
const memberLine = "master "

// String is the text on the master.
func (r rules) String() string {
	text := r.settings
	for _, m := range r.masters {
		text += "\n" + memberLine + m.runID + " " + m.name
	}
	return text
}

// parseRules reads any text: what names no master is settings.
func parseRules(text string) (r rules) {
	var settings []string
	for line := range strings.SplitSeq(text, "\n") {
		runID, name, found := strings.Cut(strings.TrimPrefix(line, memberLine), " ")
		if found && strings.HasPrefix(line, memberLine) {
			r.masters = append(r.masters, member{name, runID})
		} else {
			settings = append(settings, line)
		}
	}
	r.settings = strings.Join(settings, "\n")
	return r
}

func (r rules) has(name, runID string) bool {
	return slices.ContainsFunc(r.masters, func(m member) bool { return m.name == name || m.runID == runID && runID != NotReported })
}

func (r rules) names() string {
	var names []string
	for _, m := range r.masters {
		names = append(names, m.name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// longestValue is how much of a value is shown.
const longestValue = 200

// differences is what differs: as it is in r, and as it is here.
func (r rules) differences(here rules) string {
	var texts []string
	add := func(name, there, here string) {
		texts = append(texts, fmt.Sprintf("%s: the masters have %.*s, this proxy has %.*s", name, longestValue, there, longestValue, here))
	}
	theirs, ours := r.values(), here.values()
	for line := range strings.SplitSeq(here.settings+"\n"+r.settings, "\n") {
		if name, _, _ := strings.Cut(line, " "); here.settings != "" && theirs[name] != ours[name] {
			add(name, theirs[name], ours[name])
			ours[name] = theirs[name] // once
		}
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "; ")
	case r.settings != here.settings && here.settings != "":
		return fmt.Sprintf("the masters have %.*q, this proxy has %.*q", longestValue, r.settings, longestValue, here.settings)
	}
	add("masters", r.names(), here.names())
	return texts[0]
}

func (r rules) values() map[string]string {
	all := map[string]string{}
	for line := range strings.SplitSeq(r.settings, "\n") {
		name, value, _ := strings.Cut(line, " ")
		all[name] = value
	}
	return all
}

// LocksUpstream is the line of those settings by which the locks are at the upstream. It counts
// only as long as no era of the masters has where they are.
const LocksUpstream = "locks-at upstream"

// agreement is what a proxy knows of the rules on its masters.
type agreement struct {
	// settings are its own; empty: it grants no locks, so any will do, of the same masters.
	settings string
	names    []string
	// numbered reports whether the markers show which masters there are, so that the rules need
	// not.
	numbered func() bool
	// placed reports whether they show where the locks are.
	placed func() bool

	mu      sync.Mutex
	masters []observed
}

// observed is a master as it was seen last.
type observed struct {
	seen  bool
	runID string
	text  string // of the rules; empty: there are none
	rules rules
	// of are sets of masters that it is known to be one of, by the names in them: also when it has
	// another run_id later, and no rules.
	of map[string]bool
}

func newAgreement(settings string, names []string, numbered, placed func() bool) *agreement {
	a := &agreement{settings: settings, names: names, numbered: numbered, placed: placed, masters: make([]observed, len(names))}
	for i := range a.masters {
		a.masters[i].of = map[string]bool{}
	}
	return a
}

// saw takes the report of master i.
func (a *agreement) saw(i int, v Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &a.masters[i]
	m.seen, m.runID = true, v.RunID
	if m.text != v.Rules {
		m.text, m.rules = v.Rules, parseRules(v.Rules)
	}
}

// digest is of the settings, for other proxies; empty where there are none.
func (a *agreement) digest() string {
	if a.settings == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(withoutPlace(a.settings))) // a difference in the place shows in the rules
	return hex.EncodeToString(sum[:8])
}

// own are this proxy's.
func (a *agreement) own() rules {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ownNow()
}

func (a *agreement) ownNow() rules {
	r := rules{settings: a.settings}
	for i, name := range a.names {
		r.masters = append(r.masters, member{name, cmp.Or(a.masters[i].runID, NotReported)})
	}
	return r
}

// toWrite is what is to be written on a master: what another one has, so that all have the same
// names, or else this proxy's.
func (a *agreement) toWrite() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.masters {
		if m.text != "" && !a.numbered() && !a.differs(m.rules) {
			return m.text
		}
	}
	return a.ownNow().String()
}

// differs reports whether these are not this proxy's. Of a master that was not reached yet it
// cannot be known whether it is one of theirs; as long as nobody reaches it, no majority needs it.
func (a *agreement) differs(r rules) bool {
	switch {
	case a.settings != "" && !a.agrees(r.settings):
		return true
	case a.numbered():
		return false
	case len(r.masters) != len(a.names):
		return true
	}
	for i := range a.masters {
		if a.masters[i].seen && !a.isOf(i, r) {
			return true
		}
	}
	return false
}

// agrees reports whether these settings are as this proxy's.
func (a *agreement) agrees(settings string) bool {
	if a.placed() {
		return withoutPlace(settings) == withoutPlace(a.settings)
	}
	return settings == a.settings
}

func withoutPlace(settings string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(settings, "\n"), func(line string) bool { return line == LocksUpstream }), "\n")
}

// isOf reports whether master i is one of those in the rules, be it by another address: proxies may
// know it by several.
func (a *agreement) isOf(i int, r rules) bool {
	m, set := &a.masters[i], r.names()
	if !m.of[set] && (r.has(a.names[i], m.runID) || m.text != "" && m.rules.names() == set) {
		m.of[set] = true
	}
	return m.of[set]
}

// consent is what follows from the rules on the masters for one of them.
type consent struct {
	// differs is what differs from this proxy's; empty: nothing does.
	differs string
	// byMajority is set where a majority has others, settled where a majority has this proxy's.
	byMajority, settled bool
	// claims is set where there are none, and no majority can have others.
	claims bool
}

func (a *agreement) on(i int) (c consent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	others, own, unseen, other := 0, 0, 0, -1
	for j := range a.masters {
		switch m := &a.masters[j]; {
		case !m.seen:
			unseen++
		case m.text == "":
		case a.differs(m.rules):
			others, other = others+1, j
		default:
			own++
		}
	}
	result := vote.Count(len(a.masters), others, unseen)
	c.byMajority, c.settled = result == vote.Won, own >= vote.Majority(len(a.masters))
	switch text := a.masters[i].text; {
	case text != "" && a.differs(a.masters[i].rules):
		c.differs = a.masters[i].rules.differences(a.ownNow())
	case c.byMajority:
		c.differs = a.masters[other].rules.differences(a.ownNow())
	case text == "":
		c.claims = result == vote.Lost
	}
	return c
}
