package watch

import (
	"testing"
	"time"
)

// TestEvaluate checks the view for the observations of five masters and of three masters.
func TestEvaluate(t *testing.T) {
	now := time.Unix(1000, 0)
	in := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	heldUntil := func(s int) observation { return observation{state: stateHeld, expiry: in(s)} }
	endless, unwatched := observation{state: stateHeld}, observation{}
	f, c, a := observation{state: stateFree}, observation{state: stateChanged}, observation{state: stateReading}
	for name, test := range map[string]struct {
		observations []observation
		want         View
	}{
		"nothing is known":      {[]observation{unwatched, unwatched, unwatched}, View{}},
		"reads are in progress": {[]observation{a, a, unwatched}, View{Reading: true}},
		"all hold it":           {[]observation{heldUntil(3), heldUntil(1), heldUntil(2)}, View{Verdict: Held, Expiry: in(2)}},
		"the third end of five": {[]observation{heldUntil(5), heldUntil(4), heldUntil(3), heldUntil(2), heldUntil(1)},
			View{Verdict: Held, Expiry: in(3)}},
		"a free master counts as expired": {[]observation{heldUntil(5), heldUntil(4), heldUntil(3), f, unwatched},
			View{Verdict: Held, Expiry: in(4)}},
		"without an end":            {[]observation{endless, endless, endless}, View{Verdict: Held}},
		"a majority without an end": {[]observation{endless, endless, heldUntil(1)}, View{Verdict: Held}},
		"two masters are not watched": {[]observation{heldUntil(1), heldUntil(2), heldUntil(3), unwatched, unwatched},
			View{Verdict: Held, Expiry: in(3)}},
		"too many masters are not watched": {[]observation{heldUntil(1), heldUntil(2), unwatched, unwatched, unwatched}, View{}},
		"one master reported a change": {[]observation{heldUntil(1), heldUntil(2), c},
			View{Verdict: Held, Expiry: in(2), SomeChanged: true}},
		"a majority reported a change":              {[]observation{heldUntil(1), c, c}, View{Verdict: Changed}},
		"some reported a change, some were free":    {[]observation{heldUntil(9), c, f}, View{Verdict: Changed}},
		"a majority is free":                        {[]observation{heldUntil(1), f, f}, View{Verdict: Free}},
		"a lease has expired":                       {[]observation{heldUntil(0), heldUntil(-1), heldUntil(1)}, View{Verdict: Changed}},
		"a change, and two masters are not watched": {[]observation{c, unwatched, unwatched}, View{SomeChanged: true}},
	} {
		if got := evaluate(test.observations, len(test.observations)/2+1, now); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	if got := evaluate(nil, 1, now); got != (View{}) {
		t.Errorf("an alarm without masters: %+v", got)
	}
}

// TestEvaluateChange checks that the verdict is Held while a majority of the masters has answered a
// read, and no master has reported a change.
func TestEvaluateChange(t *testing.T) {
	past := observation{state: stateHeld, expiry: time.Unix(1, 0)}
	endless, unwatched := observation{state: stateHeld}, observation{}
	f, c, a := observation{state: stateFree}, observation{state: stateChanged}, observation{state: stateReading}
	for name, test := range map[string]struct {
		observations []observation
		want         View
	}{
		"nothing is known":                 {[]observation{unwatched, unwatched, unwatched}, View{PartlyWatched: true}},
		"reads are in progress":            {[]observation{a, a, unwatched}, View{Reading: true, PartlyWatched: true}},
		"the key is absent":                {[]observation{f, f, f}, View{Verdict: Held}},
		"the key exists":                   {[]observation{endless, past, f}, View{Verdict: Held}},
		"one master is not watched":        {[]observation{f, f, unwatched}, View{Verdict: Held, PartlyWatched: true}},
		"too many masters are not watched": {[]observation{f, unwatched, unwatched}, View{PartlyWatched: true}},
		"one master reported a change":     {[]observation{f, f, c}, View{Verdict: Changed, SomeChanged: true}},
		"a majority reported it":           {[]observation{c, f, c}, View{Verdict: Changed}},
		"a change, and one master is not watched": {[]observation{c, unwatched, a}, View{Verdict: Changed, SomeChanged: true,
			Reading: true, PartlyWatched: true}},
	} {
		if got := evaluateChange(test.observations, len(test.observations)/2+1, time.Unix(1000, 0)); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
