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

// rulesSeen returns the rules that these inspections show.
func rulesSeen(settings string, visits []Inspection) *rulesTracker {
	names, numbered, placed := make([]string, len(visits)), false, false
	for i, v := range visits {
		names[i] = v.Name
		if v.Report != nil {
			numbered = numbered || v.Report.Marker.Value.Era.Number > 0
			placed = placed || v.Report.Marker.Value.Era.Place != location.Undecided
		}
	}
	a := newRulesTracker(settings, names, func() bool { return numbered }, func() bool { return placed })
	for i, v := range visits {
		if v.Report != nil {
			a.observe(i, *v.Report)
		}
	}
	return a
}

// Differences returns for each master why it would not vote for a proxy with these settings: the
// differences between its rules and the settings. A text is empty if there are none.
func Differences(settings string, visits []Inspection) []string {
	a, texts := rulesSeen(settings, visits), make([]string, len(visits))
	for i, v := range visits {
		if v.Report != nil {
			texts[i] = a.consentFor(i).differs
		}
	}
	return texts
}

// CountProxies returns the number of running proxies, and how many of them have different settings
// or a different number of masters.
func CountProxies(settings string, visits []Inspection) (running, differing int) {
	var lists [][]Proxy
	for _, v := range visits {
		if v.Report != nil {
			lists = append(lists, v.Report.Proxies)
		}
	}
	own, all := (&rulesTracker{settings: settings}).digest(), confirmedProxies(lists)
	for _, p := range all {
		if p.Settings != "" && p.Settings != own || p.Masters != len(visits) {
			differing++
		}
	}
	return len(all), differing
}

// ReplaceSettings writes the rules of a proxy with these settings to all masters that reported,
// whatever rules they have. Votes in other proxies' running batches do not count any more. It
// returns an error for each master on which it failed. A master that has no rules and votes for no
// proxy needs none.
func ReplaceSettings(ctx context.Context, settings string, visits []Inspection) []error {
	own, errs := rulesSeen(settings, visits).own().String(), make([]error, len(visits))
	for i, v := range visits {
		if v.Report != nil {
			errs[i] = v.impose(ctx, own, slices.Concat(visits[:i], visits[i+1:]))
		}
	}
	return errs
}

func (v Inspection) impose(ctx context.Context, own string, others []Inspection) error {
	old, marked := v.Report.Marker.Value, v.Report.Marker.Valid
	if v.Report.isNewer() {
		return &UnfitError{Why: whyNewer}
	}
	if !marked && v.Report.Rules == "" {
		return nil
	}
	next, text := old, ""
	if next.Nonce, next.Proof = marker.NewNonce(), marker.ProofIntact; marked && old.Seal.IsNone() {
		text = next.String()
		publishSeq(ctx, others, next.Nonce, script.FirstSeq) // so that the master can prove to have all its data
	}
	did, err := runInt(ctx, v.Conn, script.Impose, v.Report.Marker.Text, own, text)
	switch {
	case err != nil:
		return err
	case did != 1:
		return errUndecided
	case text != "":
		publishSeq(ctx, others, old.Nonce, retiredSeq) // a disk that is set back to the old marker lacks data
	}
	return nil
}

// publishSeq stores a number of another master's sequence on masters, except on masters that do not
// reply or must stay empty.
func publishSeq(ctx context.Context, on []Inspection, nonce string, n int64) {
	for _, v := range on {
		if v.Report != nil && v.Report.Marker.Text != "" {
			_, _ = runInt(ctx, v.Conn, script.PublishSeqs, marker.Millis(seqTTL), marker.InDatabase(nonce, 0), n)
		}
	}
}
