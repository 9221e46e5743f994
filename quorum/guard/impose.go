package guard

import (
	"context"
	"slices"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/location"
)

// Inspection is a check of a master without a guard.
type Inspection struct {
	// Name is the master's address.
	Name string
	// Report is the master's report; nil if there is none.
	Report *Report
	Conn   Conn
}

// newRulesTrackerOf returns a tracker of the rules that these inspections show.
func newRulesTrackerOf(settings string, inspections []Inspection) *rulesTracker {
	names, markersShowMasters, markersShowLocation := make([]string, len(inspections)), false, false
	for i, v := range inspections {
		names[i] = v.Name
		if v.Report != nil {
			markersShowMasters = markersShowMasters || v.Report.Marker.Value.Era.Number > 0
			markersShowLocation = markersShowLocation || v.Report.Marker.Value.Era.Place != location.Undecided
		}
	}
	a := newRulesTracker(settings, names, func() bool { return markersShowMasters }, func() bool { return markersShowLocation })
	for i, v := range inspections {
		if v.Report != nil {
			a.observe(i, *v.Report)
		}
	}
	return a
}

// Differences returns for each master why it would not vote for a proxy with these settings: the
// differences between its rules and the settings. A text is empty if there are none.
func Differences(settings string, inspections []Inspection) []string {
	a, texts := newRulesTrackerOf(settings, inspections), make([]string, len(inspections))
	for i, v := range inspections {
		if v.Report != nil {
			texts[i] = a.check(i).differences
		}
	}
	return texts
}

// CountProxies returns the number of running proxies, and how many of them have different settings
// or a different number of masters.
func CountProxies(settings string, inspections []Inspection) (running, differing int) {
	var lists [][]Proxy
	for _, v := range inspections {
		if v.Report != nil {
			lists = append(lists, v.Report.Proxies)
		}
	}
	ownHash, proxies := (&rulesTracker{settings: settings}).settingsHash(), confirmedProxies(lists)
	for _, p := range proxies {
		if p.Settings != "" && p.Settings != ownHash || p.Masters != len(inspections) {
			differing++
		}
	}
	return len(proxies), differing
}

// ReplaceSettings writes the rules of a proxy with these settings to all masters that reported,
// whatever rules they have. Votes in running batches of other proxies do not count any more. It
// returns an error for each master on which it failed. A master that has no rules and votes for no
// proxy needs none.
func ReplaceSettings(ctx context.Context, settings string, inspections []Inspection) []error {
	ownRules, errs := newRulesTrackerOf(settings, inspections).own().String(), make([]error, len(inspections))
	for i, v := range inspections {
		if v.Report != nil {
			errs[i] = v.replaceRules(ctx, ownRules, slices.Concat(inspections[:i], inspections[i+1:]))
		}
	}
	return errs
}

// replaceRules replaces the master's rules with ownRules, and its marker with a new one.
func (v Inspection) replaceRules(ctx context.Context, ownRules string, others []Inspection) error {
	old, marked := v.Report.Marker.Value, v.Report.Marker.Valid
	if v.Report.isNewer() {
		return &UnfitError{Cause: unfitNewer}
	}
	if !marked && v.Report.Rules == "" {
		return nil
	}
	next, text := old, ""
	if next.Nonce, next.Proof = marker.NewNonce(), marker.ProofIntact; marked && old.Seal.IsNone() {
		text = next.String()
		publishSeq(ctx, others, next.Nonce, script.FirstSeq) // so that the master can prove to have all its data
	}
	result, err := runInt(ctx, v.Conn, script.ReplaceRules, v.Report.Marker.Text, ownRules, text)
	switch {
	case err != nil:
		return err
	case result != 1:
		return errUnstableMarker
	case text != "":
		publishSeq(ctx, others, old.Nonce, retiredSeq) // a disk that is set back to the old marker lacks data
	}
	return nil
}

// publishSeq stores a number of another master's sequence on masters, except on masters that do not
// reply or must stay empty.
func publishSeq(ctx context.Context, masters []Inspection, nonce string, n int64) {
	for _, v := range masters {
		if v.Report != nil && v.Report.Marker.Text != "" {
			_, _ = runInt(ctx, v.Conn, script.PublishSeqs, marker.FormatMillis(seqTTL), marker.InDatabase(nonce, 0), n)
		}
	}
}
