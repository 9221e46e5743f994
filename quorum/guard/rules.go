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

// All proxies on a master must share the settings that decide which keys are locks, and the list of
// masters. So each master keeps these rules, written by the first proxy for which it votes. It
// votes for no proxy with different rules. Two majorities share a master, so locks are never
// granted by two sets of rules.

// rules holds the rules kept on a master.
type rules struct {
	// settings has a name and a value in each line.
	settings string
	masters  []member
}

// member is one of the masters: its address as known to the proxy that wrote the rules, and its
// run_id at that time.
type member struct{ name, runID string }

const memberLine = "master "

// String returns the text on the master.
func (r rules) String() string {
	text := r.settings
	for _, m := range r.masters {
		text += "\n" + memberLine + m.runID + " " + m.name
	}
	return text
}

// parseRules parses any text: lines that name no master are settings.
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
	return slices.ContainsFunc(r.masters, func(m member) bool {
		return m.name == name || m.runID == runID && runID != NotReported
	})
}

func (r rules) names() string {
	var names []string
	for _, m := range r.masters {
		names = append(names, m.name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// maxValueShown limits the part of a value that is shown.
const maxValueShown = 200

// differences describes the differences between the rules on a master and this proxy's rules
// (here).
func (r rules) differences(here rules) string {
	var texts []string
	add := func(name, there, here string) {
		texts = append(texts, fmt.Sprintf("%s: the masters have %.*s, this proxy has %.*s",
			name, maxValueShown, there, maxValueShown, here))
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
		return fmt.Sprintf("the masters have %.*q, this proxy has %.*q",
			maxValueShown, r.settings, maxValueShown, here.settings)
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

// LocksUpstream is the line of the settings by which the locks are at the upstream. It counts only
// until an era of the masters has their location.
const LocksUpstream = "locks-at upstream"

// rulesTracker holds a proxy's knowledge of the rules on its masters.
type rulesTracker struct {
	// settings holds the proxy's settings; empty if it grants no locks: then all settings fit.
	settings string
	names    []string
	// numbered reports whether the markers show which masters there are. Then the rules need not
	// show that.
	numbered func() bool
	// placed reports whether the markers show the location of the locks.
	placed func() bool

	mu      sync.Mutex
	masters []observed
}

// observed is the last report of a master.
type observed struct {
	seen  bool
	runID string
	text  string // of the rules; empty if there are none
	rules rules
	// memberOf holds the sets to which the master is known to belong, by the names of their
	// members. It stays valid after the master has a different run_id, and no rules.
	memberOf map[string]bool
}

func newRulesTracker(settings string, names []string, numbered, placed func() bool) *rulesTracker {
	a := &rulesTracker{
		settings: settings, names: names, numbered: numbered, placed: placed, masters: make([]observed, len(names)),
	}
	for i := range a.masters {
		a.masters[i].memberOf = map[string]bool{}
	}
	return a
}

func (a *rulesTracker) observe(i int, v Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &a.masters[i]
	m.seen, m.runID = true, v.RunID
	if m.text != v.Rules {
		m.text, m.rules = v.Rules, parseRules(v.Rules)
	}
}

// digest returns a hash of the settings, for other proxies; empty if there are none.
func (a *rulesTracker) digest() string {
	if a.settings == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(withoutPlace(a.settings))) // a different location shows in the rules
	return hex.EncodeToString(sum[:8])
}

func (a *rulesTracker) own() rules {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ownNow()
}

func (a *rulesTracker) ownNow() rules {
	r := rules{settings: a.settings}
	for i, name := range a.names {
		r.masters = append(r.masters, member{name, cmp.Or(a.masters[i].runID, NotReported)})
	}
	return r
}

// rulesToWrite returns the rules for a master: the rules on another master, so that all have the
// same names, or else this proxy's.
func (a *rulesTracker) rulesToWrite() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.masters {
		if m.text != "" && !a.numbered() && !a.differs(m.rules) {
			return m.text
		}
	}
	return a.ownNow().String()
}

// differs reports whether rules are different from this proxy's. A master that has not been reached
// yet may or may not be among their members. While no proxy reaches it, no majority needs it.
func (a *rulesTracker) differs(r rules) bool {
	switch {
	case a.settings != "" && !a.agrees(r.settings):
		return true
	case a.numbered():
		return false
	case len(r.masters) != len(a.names):
		return true
	}
	for i := range a.masters {
		if a.masters[i].seen && !a.isMember(i, r) {
			return true
		}
	}
	return false
}

// agrees reports whether settings match this proxy's.
func (a *rulesTracker) agrees(settings string) bool {
	if a.placed() {
		return withoutPlace(settings) == withoutPlace(a.settings)
	}
	return settings == a.settings
}

func withoutPlace(settings string) string {
	lines := slices.DeleteFunc(strings.Split(settings, "\n"), func(line string) bool { return line == LocksUpstream })
	return strings.Join(lines, "\n")
}

// isMember reports whether a master is a member in the rules, perhaps by another address, because
// proxies may know it by several.
func (a *rulesTracker) isMember(i int, r rules) bool {
	m, set := &a.masters[i], r.names()
	if !m.memberOf[set] && (r.has(a.names[i], m.runID) || m.text != "" && m.rules.names() == set) {
		m.memberOf[set] = true
	}
	return m.memberOf[set]
}

// consent is the consequence of the rules on the masters for one master.
type consent struct {
	// differs describes the differences to this proxy's rules; empty if there are none.
	differs string
	// majorityDiffers is set if a majority has different rules, settled if a majority has this
	// proxy's rules.
	majorityDiffers, settled bool
	// claims is set if the master has no rules, and no majority can have different rules.
	claims bool
}

func (a *rulesTracker) consentFor(i int) (c consent) {
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
	c.majorityDiffers, c.settled = result == vote.Won, own >= vote.Majority(len(a.masters))
	switch text := a.masters[i].text; {
	case text != "" && a.differs(a.masters[i].rules):
		c.differs = a.masters[i].rules.differences(a.ownNow())
	case c.majorityDiffers:
		c.differs = a.masters[other].rules.differences(a.ownNow())
	case text == "":
		c.claims = result == vote.Lost
	}
	return c
}
