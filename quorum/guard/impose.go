package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// Inspection holds the result of checking a master without a guard.
type Inspection struct {
	// Name is the master's address.
	Name string
	// Report is the master's report; nil if there is none.
	Report *Report
	Conn   Conn
}

// nextEra returns the era in which the master votes, or will vote once a change is complete. known
// is false if the master has no valid marker.
func (v Inspection) nextEra() (era reconfig.Era, known bool) {
	if v.Report == nil || !v.Report.Marker.Valid {
		return era, false
	}
	m := v.Report.Marker.Value
	if !m.Seal.IsNone() {
		return m.Seal.NextEra(m.Era), true
	}
	return m.Era, true
}

// statedEra returns the next era, or else the era of these masters in the quarantine record. known is
// false if the master states none.
func (v Inspection) statedEra(names []string) (era reconfig.Era, known bool) {
	if era, known = v.nextEra(); !known && v.Report != nil {
		era, known = v.Report.Record.Value.Era()
		known = known && era.HasMasters(names)
	}
	return era, known
}

// newRulesTrackerOf returns a tracker of the rules that these inspections show. If an era shows the
// list of masters, the list in the rules does not count. The same applies to the location of the
// locks. If everyEra is set, all eras must show the value.
func newRulesTrackerOf(settings string, inspections []Inspection, everyEra bool) *rulesTracker {
	eras, showMasters, showLocation := 0, 0, 0
	for _, v := range inspections {
		era, known := v.statedEra(namesOf(inspections))
		if !known {
			continue
		}
		eras++
		if era.Number > 0 {
			showMasters++
		}
		if era.Place != location.Undecided {
			showLocation++
		}
	}
	enough := func(n int) func() bool {
		return func() bool { return n > 0 && (!everyEra || n == eras) }
	}
	a := newRulesTracker(settings, namesOf(inspections), enough(showMasters), enough(showLocation))
	for i, v := range inspections {
		if v.Report != nil {
			a.observe(i, *v.Report)
		}
	}
	return a
}

func namesOf(inspections []Inspection) []string {
	names := make([]string, len(inspections))
	for i, v := range inspections {
		names[i] = v.Name
	}
	return names
}

// changedMasters begins the description of a difference to a list of masters that was changed.
const changedMasters = "masters: the list was changed"

// listDifference describes the difference between the names and the masters that the master's
// marker shows. The result is empty if there is no difference.
func (v Inspection) listDifference(names []string) string {
	era, _ := v.nextEra()
	if era.HasMasters(names) {
		return ""
	}
	return describeChangedList(v.Report.Marker.Value.Seal.Names, names)
}

// describeChangedList describes the difference between the names and the present masters; present is
// empty if they are not known.
func describeChangedList(present, names []string) string {
	text := changedMasters
	if len(present) > 0 {
		text += " to " + joinSortedNames(present)
	}
	return text + ", this proxy has " + joinSortedNames(names)
}

func joinSortedNames(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// Joins reports whether the master is sealed, and its next set consists of these masters.
func (v Inspection) Joins(names []string) bool {
	era, known := v.nextEra()
	return known && !v.Report.Marker.Value.Seal.IsNone() && era.HasMasters(names)
}

// Differences returns for each master why it would not vote for a proxy with these settings. Each
// text lists the differences between the master's markers or rules and the settings, and is empty
// if there are no differences.
func Differences(settings string, inspections []Inspection) []string {
	a, texts := newRulesTrackerOf(settings, inspections, false), make([]string, len(inspections))
	changed, differing := "", 0
	for i, v := range inspections {
		if texts[i] = v.listDifference(a.names); texts[i] != "" {
			changed, differing = texts[i], differing+1
		}
	}
	for i, v := range inspections {
		switch {
		case v.Report == nil || texts[i] != "":
		case differing >= vote.Majority(len(inspections)):
			texts[i] = changed
		default:
			texts[i] = a.check(i).differences
		}
	}
	return texts
}

// ProxyCounts holds numbers of running proxies.
type ProxyCounts struct {
	// RunningProxies counts all proxies that a master lists.
	RunningProxies int
	// LosingProxies counts the proxies that ReplaceSettings could deprive of a vote.
	LosingProxies int
	// DifferingProxies counts the proxies with different settings that a master with settings
	// lists. Masters with the given settings do not vote for these proxies.
	DifferingProxies int
}

// CountProxies counts the running proxies.
func CountProxies(settings string, inspections []Inspection) ProxyCounts {
	own := newRulesReplacement(settings, inspections)
	all, losing, differing := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, v := range inspections {
		if v.Report == nil {
			continue
		}
		for _, p := range v.Report.Proxies {
			all[p.ID] = true
			if own.takesVote(i, p) {
				losing[p.ID] = true
			}
			if own.differs(p) && parseRules(v.Report.Rules).settings != "" {
				differing[p.ID] = true
			}
		}
	}
	return ProxyCounts{RunningProxies: len(all), LosingProxies: len(losing), DifferingProxies: len(differing)}
}

// rulesReplacement holds rules that an operator is about to write.
type rulesReplacement struct {
	*rulesTracker
	inspections []Inspection
	// servers is the hash of the masters, or unknownServers.
	servers string
}

func newRulesReplacement(settings string, inspections []Inspection) rulesReplacement {
	ids := make([]string, len(inspections))
	for i, v := range inspections {
		if v.Report != nil {
			ids[i] = v.Report.RunID
		}
	}
	return rulesReplacement{newRulesTrackerOf(settings, inspections, true), inspections, hashServers(ids)}
}

// takesVote reports whether a proxy may lose the vote of a master when the rules are written. A
// change of a rule is harmless if the proxy's announcement shows the new value. Announcements do
// not show the location of the locks.
func (m rulesReplacement) takesVote(i int, p Proxy) bool {
	r := parseRules(m.inspections[i].Report.Rules)
	return m.locationDiffers(r) ||
		m.settingsDiffer(r) && m.differs(p) ||
		m.listChanges(i, r) && (p.Servers != m.servers || m.servers == unknownServers)
}

// differs reports whether a proxy that grants locks has different settings.
func (m rulesReplacement) differs(p Proxy) bool {
	return p.Settings != "" && p.Settings != m.settingsHash()
}

// listChanges reports whether the list of masters on a master would change. A master that was not
// reached must be listed by its name.
func (m rulesReplacement) listChanges(i int, r rules) bool {
	switch {
	case m.inspections[i].listDifference(m.names) != "":
		return true
	case m.eraShowsMasters():
		return false
	case len(r.masters) != len(m.names):
		return true
	}
	for j := range m.names {
		if !m.isMember(j, r) {
			return true
		}
	}
	return false
}

// ReplaceSettings writes the rules of a proxy with these settings to all masters that reported,
// regardless of their present rules. Votes in running batches of other proxies do not count any
// more. It returns an error for each master on which it failed. It skips a master that has no rules
// and votes for no proxy.
func ReplaceSettings(ctx context.Context, settings string, inspections []Inspection) []error {
	ownRules, errs := newRulesTrackerOf(settings, inspections, true).ownRules().String(), make([]error, len(inspections))
	for i, v := range inspections {
		if v.Report != nil {
			if differs := v.listDifference(namesOf(inspections)); differs != "" {
				// The list of masters comes from the marker; new rules do not change it.
				errs[i] = errors.New(RulesAdvice(differs))
				continue
			}
			errs[i] = v.replaceRules(ctx, ownRules, slices.Concat(inspections[:i], inspections[i+1:]))
		}
	}
	return errs
}

// replaceRules replaces the master's rules with ownRules. Unless the master is sealed, it also
// replaces the marker with a new marker.
func (v Inspection) replaceRules(ctx context.Context, ownRules string, otherMasters []Inspection) error {
	old, marked := v.Report.Marker.Value, v.Report.Marker.Valid
	if v.Report.isNewer() {
		return &UnfitError{Cause: unfitNewerProxies}
	}
	if !marked && v.Report.Rules == "" {
		return nil
	}
	next, text := old, ""
	if next.Nonce, next.Proof = marker.NewNonce(), marker.ProofIntact; marked && old.Seal.IsNone() {
		text = next.String()
		// The number lets the master prove that it has all its data.
		publishSeq(ctx, otherMasters, next.Nonce, script.FirstSeq)
	}
	result, err := runInt(ctx, v.Conn, script.ReplaceRules, v.Report.Marker.Text, ownRules, text)
	switch {
	case err != nil:
		return err
	case result != 1:
		return errUnstableMarker
	case text != "":
		// If the master's disk is set back to the old marker, its data are incomplete.
		publishSeq(ctx, otherMasters, old.Nonce, retiredSeq)
	}
	return nil
}

// publishSeq stores a number of another master's sequence on all masters that reported a marker.
func publishSeq(ctx context.Context, masters []Inspection, nonce string, n int64) {
	for _, v := range masters {
		if v.Report != nil && v.Report.Marker.Text != "" {
			_, _ = runInt(ctx, v.Conn, script.PublishSeqs, marker.FormatMillis(seqTTL), marker.AppendDatabase(nonce, 0), n)
		}
	}
}
