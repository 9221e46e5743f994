package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/vote"
)

// All proxies on a master must share its rules; see GUARD.md (Proxies that share masters).

// rules holds the rules kept on a master.
type rules struct {
	// settings has a name and a value in each line.
	settings string
	masters  []member
}

// member identifies a master by its address in the configuration of the proxy that wrote the rules,
// and by its run_id at that time.
type member struct{ name, runID string }

const memberPrefix = "master "

// String returns the rules as the text that a master stores.
func (r rules) String() string {
	text := r.settings
	for _, m := range r.masters {
		text += "\n" + memberPrefix + m.runID + " " + m.name
	}
	return text
}

// parseRules parses the text of the rules. Lines that name no master are settings.
func parseRules(text string) (r rules) {
	var settings []string
	for line := range strings.SplitSeq(text, "\n") {
		runID, name, found := strings.Cut(strings.TrimPrefix(line, memberPrefix), " ")
		if found && strings.HasPrefix(line, memberPrefix) {
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
	return joinSortedNames(names)
}

// maxValueShown limits the characters of a value that a difference shows.
const maxValueShown = 200

// differences describes the differences between the rules r on a master and this proxy's own rules.
func (r rules) differences(ownRules rules) string {
	var texts []string
	add := func(name, masterValue, ownValue string) {
		texts = append(texts, fmt.Sprintf("%s: the masters have %.*s, this proxy has %.*s",
			name, maxValueShown, masterValue, maxValueShown, ownValue))
	}
	masterValues, ownValues := r.values(), ownRules.values()
	for line := range strings.SplitSeq(ownRules.settings+"\n"+r.settings, "\n") {
		if name, _, _ := strings.Cut(line, " "); ownRules.settings != "" && masterValues[name] != ownValues[name] {
			add(name, masterValues[name], ownValues[name])
			ownValues[name] = masterValues[name] // report the difference once
		}
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "; ")
	case r.settings != ownRules.settings && ownRules.settings != "":
		return fmt.Sprintf("the masters have %.*q, this proxy has %.*q",
			maxValueShown, r.settings, maxValueShown, ownRules.settings)
	}
	add("masters", r.names(), ownRules.names())
	return texts[0]
}

func (r rules) values() map[string]string {
	byName := map[string]string{}
	for line := range strings.SplitSeq(r.settings, "\n") {
		name, value, _ := strings.Cut(line, " ")
		byName[name] = value
	}
	return byName
}

// LocksUpstream is the line of the settings that states that the locks are at the upstream. It
// counts only until the era of the masters states the location.
const LocksUpstream = "locks-at upstream"

// locationSetting is the setting that adds the line LocksUpstream.
const locationSetting = "move-from-upstream"

// rulesTracker holds a proxy's knowledge of the rules on its masters.
type rulesTracker struct {
	// settings holds the proxy's settings. It is empty if the proxy grants no locks; then all
	// settings fit.
	settings string
	names    []string
	// eraShowsMasters reports whether the era shows the list of masters. Then the list in the rules
	// does not count.
	eraShowsMasters func() bool
	// eraShowsLocation reports whether the era shows the location of the locks.
	eraShowsLocation func() bool

	mu      sync.Mutex
	masters []masterRules
}

// masterRules holds the last report of a master about its rules.
type masterRules struct {
	seen  bool
	runID string
	text  string // the text of the rules; empty if there are none
	rules rules
	// memberOf holds the sets to which the master is known to belong, by the names of their
	// members. It stays valid if the master returns with a different run_id and without rules.
	memberOf map[string]bool
}

func newRulesTracker(settings string, names []string, eraShowsMasters, eraShowsLocation func() bool) *rulesTracker {
	a := &rulesTracker{
		settings: settings, names: names, eraShowsMasters: eraShowsMasters, eraShowsLocation: eraShowsLocation, masters: make([]masterRules, len(names)),
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

// settingsHash returns a hash of the settings, for other proxies; empty if there are none.
func (a *rulesTracker) settingsHash() string {
	if a.settings == "" {
		return ""
	}
	// The rules themselves show the location.
	return reconfig.Hash([]string{withoutLocation(a.settings)})
}

// ownRules returns this proxy's rules. The caller must hold mu, or be the only user of the tracker.
func (a *rulesTracker) ownRules() rules {
	r := rules{settings: a.settings}
	for i, name := range a.names {
		r.masters = append(r.masters, member{name, cmp.Or(a.masters[i].runID, NotReported)})
	}
	return r
}

// rulesToWrite returns the rules to write to a master. If a master has rules that do not differ
// from this proxy's, it returns that master's rules, so that all masters have the same names.
// Otherwise, or if the era shows the masters, it returns this proxy's rules.
func (a *rulesTracker) rulesToWrite() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.masters {
		if m.text != "" && !a.eraShowsMasters() && !a.differs(m.rules) {
			return m.text
		}
	}
	return a.ownRules().String()
}

// differs reports whether rules are different from this proxy's.
func (a *rulesTracker) differs(r rules) bool {
	return a.locationDiffers(r) || a.settingsDiffer(r) || a.mastersDiffer(r)
}

// settingsDiffer reports whether settings other than the location of the locks differ.
func (a *rulesTracker) settingsDiffer(r rules) bool {
	return a.settings != "" && withoutLocation(r.settings) != withoutLocation(a.settings)
}

// locationDiffers reports whether the rules assume a different location of the locks. It returns
// false if the era shows the location.
func (a *rulesTracker) locationDiffers(r rules) bool {
	return a.settings != "" && !a.eraShowsLocation() && assumesUpstream(r.settings) != assumesUpstream(a.settings)
}

// mastersDiffer reports whether the rules list different masters. It ignores masters that this
// proxy has not reached yet: the rules may list such a master by another address.
func (a *rulesTracker) mastersDiffer(r rules) bool {
	if a.eraShowsMasters() {
		return false
	}
	if len(r.masters) != len(a.names) {
		return true
	}
	for i := range a.masters {
		if a.masters[i].seen && !a.isMember(i, r) {
			return true
		}
	}
	return false
}

// differences describes how rules differ from this proxy's.
func (a *rulesTracker) differences(r rules) string {
	own, location := a.ownRules(), ""
	if a.locationDiffers(r) {
		location = fmt.Sprintf("%s: the masters have %v, this proxy has %v",
			locationSetting, assumesUpstream(r.settings), assumesUpstream(own.settings))
		if !a.settingsDiffer(r) {
			return location
		}
		location += "; "
	}
	r.settings, own.settings = withoutLocation(r.settings), withoutLocation(own.settings)
	return location + r.differences(own)
}

// assumesUpstream reports whether settings assume the locks at the upstream.
func assumesUpstream(settings string) bool {
	return slices.Contains(strings.Split(settings, "\n"), LocksUpstream)
}

func withoutLocation(settings string) string {
	lines := slices.DeleteFunc(strings.Split(settings, "\n"), func(line string) bool { return line == LocksUpstream })
	return strings.Join(lines, "\n")
}

// isMember reports whether the rules list a master, perhaps by another address: proxies may use
// different addresses for one master.
func (a *rulesTracker) isMember(i int, r rules) bool {
	m, set := &a.masters[i], r.names()
	if !m.memberOf[set] && (r.has(a.names[i], m.runID) || m.text != "" && m.rules.names() == set) {
		m.memberOf[set] = true
	}
	return m.memberOf[set]
}

// rulesCheck holds the result of comparing the rules on the masters with this proxy's, for one
// master.
type rulesCheck struct {
	// differences describes the differences to this proxy's rules; empty if there are none.
	differences string
	// majorityDiffers is set if a majority has different rules, majorityAgrees if a majority has
	// this proxy's rules.
	majorityDiffers, majorityAgrees bool
	// mayWrite is set if the master has no rules, and no majority can have different rules.
	mayWrite bool
}

func (a *rulesTracker) check(i int) (c rulesCheck) {
	a.mu.Lock()
	defer a.mu.Unlock()
	different, same, unseen, differentIndex := 0, 0, 0, -1
	for j := range a.masters {
		switch m := &a.masters[j]; {
		case !m.seen:
			unseen++
		case m.text == "":
		case a.differs(m.rules):
			different, differentIndex = different+1, j
		default:
			same++
		}
	}
	result := vote.Count(len(a.masters), different, unseen)
	c.majorityDiffers, c.majorityAgrees = result == vote.Won, same >= vote.Majority(len(a.masters))
	switch text := a.masters[i].text; {
	case text != "" && a.differs(a.masters[i].rules):
		c.differences = a.differences(a.masters[i].rules)
	case c.majorityDiffers:
		c.differences = a.differences(a.masters[differentIndex].rules)
	case text == "":
		c.mayWrite = result == vote.Lost
	}
	return c
}
