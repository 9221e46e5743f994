package guard

import (
	"context"
	"slices"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/place"
)

// Visit is a look at a master by somebody who guards none.
type Visit struct {
	// Name is its address.
	Name string
	// Report is its own; nil: there is none.
	Report *Report
	Conn   Conn
}

// visited is what is known of the rules after these visits.
func visited(settings string, visits []Visit) *agreement {
	names, numbered, placed := make([]string, len(visits)), false, false
	for i, v := range visits {
		names[i] = v.Name
		if v.Report != nil {
			numbered = numbered || v.Report.Marker.Value.Era.Number > 0
			placed = placed || v.Report.Marker.Value.Era.Place != place.Undecided
		}
	}
	a := newAgreement(settings, names, func() bool { return numbered }, func() bool { return placed })
	for i, v := range visits {
		if v.Report != nil {
			a.saw(i, *v.Report)
		}
	}
	return a
}

// Differences is of each of a proxy's masters why it would not vote for one with these settings:
// what the rules have there that differs. It is empty where nothing does.
func Differences(settings string, visits []Visit) []string {
	a, texts := visited(settings, visits), make([]string, len(visits))
	for i, v := range visits {
		if v.Report != nil {
			texts[i] = a.on(i).differs
		}
	}
	return texts
}

// Unlike returns how many proxies are running that have other settings than these, or another
// number of masters.
func Unlike(settings string, visits []Visit) (n int) {
	var lists [][]Proxy
	for _, v := range visits {
		if v.Report != nil {
			lists = append(lists, v.Report.Proxies)
		}
	}
	own := (&agreement{settings: settings}).digest()
	for _, p := range counted(lists) {
		if p.Settings != "" && p.Settings != own || p.Masters != len(visits) {
			n++
		}
	}
	return n
}

// Impose writes the rules of a proxy with these settings on all of its masters that reported,
// whatever was there. What others have under way does not count any more. It returns why not of
// each where that failed. A master that has none and votes for nobody needs none.
func Impose(ctx context.Context, settings string, visits []Visit) []error {
	own, errs := visited(settings, visits).own().String(), make([]error, len(visits))
	for i, v := range visits {
		if v.Report != nil {
			errs[i] = v.impose(ctx, own, slices.Concat(visits[:i], visits[i+1:]))
		}
	}
	return errs
}

func (v Visit) impose(ctx context.Context, own string, others []Visit) error {
	old, marked := v.Report.Marker.Value, v.Report.Marker.Valid
	if v.Report.isNewer() {
		return &UnfitError{Why: whyNewer}
	}
	if !marked && v.Report.Rules == "" {
		return nil
	}
	next, text := old, ""
	if next.Nonce, next.Proof = marker.NewNonce(), marker.ProofRemark; marked && old.Seal.IsNone() {
		text = next.String()
		leaveAge(ctx, others, next.Nonce, script.FirstAge) // by which it can show that it has all its data
	}
	did, err := amend(ctx, v.Conn, script.Impose, v.Report.Marker.Text, own, text)
	switch {
	case err != nil:
		return err
	case did != 1:
		return errUndecided
	case text != "":
		leaveAge(ctx, others, old.Nonce, retiredAge) // a disk that is set back to it does not have all
	}
	return nil
}

// leaveAge leaves on masters how far a sequence of another one has come, as far as they answer and
// are none that is to stay empty.
func leaveAge(ctx context.Context, on []Visit, nonce string, n int64) {
	for _, v := range on {
		if v.Report != nil && v.Report.Marker.Text != "" {
			_, _ = amend(ctx, v.Conn, script.KeepAges, marker.Millis(ageKept), marker.InDatabase(nonce, 0), n)
		}
	}
}
