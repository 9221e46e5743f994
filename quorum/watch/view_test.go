package watch

import (
	"testing"
	"time"
)

// TestEvaluate: the view for the sightings of five masters and of three.
func TestEvaluate(t *testing.T) {
	now := time.Unix(1000, 0)
	in := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	until := func(s int) sighting { return sighting{state: held, end: in(s)} }
	endless, none := sighting{state: held}, sighting{}
	f, c, a := sighting{state: free}, sighting{state: changed}, sighting{state: asked}
	for name, test := range map[string]struct {
		seen []sighting
		want View
	}{
		"nothing is known":    {[]sighting{none, none, none}, View{}},
		"looks are under way": {[]sighting{a, a, none}, View{Asking: true}},
		"all hold it":         {[]sighting{until(3), until(1), until(2)}, View{Verdict: Held, End: in(2)}},
		"the third end of five": {[]sighting{until(5), until(4), until(3), until(2), until(1)},
			View{Verdict: Held, End: in(3)}},
		"a free one counts as over": {[]sighting{until(5), until(4), until(3), f, none},
			View{Verdict: Held, End: in(4)}},
		"without an end":            {[]sighting{endless, endless, endless}, View{Verdict: Held}},
		"a majority without an end": {[]sighting{endless, endless, until(1)}, View{Verdict: Held}},
		"two do not know": {[]sighting{until(1), until(2), until(3), none, none},
			View{Verdict: Held, End: in(3)}},
		"too many do not know": {[]sighting{until(1), until(2), none, none, none}, View{}},
		"one told of a change": {[]sighting{until(1), until(2), c},
			View{Verdict: Held, End: in(2), SomeChanged: true}},
		"a majority told of a change":    {[]sighting{until(1), c, c}, View{Verdict: Changed}},
		"some told, some were free":      {[]sighting{until(9), c, f}, View{Verdict: Changed}},
		"a majority is free":             {[]sighting{until(1), f, f}, View{Verdict: Free}},
		"a lease that is over":           {[]sighting{until(0), until(-1), until(1)}, View{Verdict: Changed}},
		"a change where little is known": {[]sighting{c, none, none}, View{SomeChanged: true}},
	} {
		if got := evaluate(test.seen, len(test.seen)/2+1, now); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	if got := evaluate(nil, 1, now); got != (View{}) {
		t.Errorf("an alarm without masters: %+v", got)
	}
}

// TestEvaluateChange: a waiter for any change sleeps while a majority was looked at and has
// reported no change.
func TestEvaluateChange(t *testing.T) {
	past := sighting{state: held, end: time.Unix(1, 0)}
	endless, none := sighting{state: held}, sighting{}
	f, c, a := sighting{state: free}, sighting{state: changed}, sighting{state: asked}
	for name, test := range map[string]struct {
		seen []sighting
		want View
	}{
		"nothing is known":      {[]sighting{none, none, none}, View{Partly: true}},
		"looks are under way":   {[]sighting{a, a, none}, View{Asking: true, Partly: true}},
		"nothing is there":      {[]sighting{f, f, f}, View{Verdict: Held}},
		"something is there":    {[]sighting{endless, past, f}, View{Verdict: Held}},
		"one is not watched":    {[]sighting{f, f, none}, View{Verdict: Held, Partly: true}},
		"too many are not":      {[]sighting{f, none, none}, View{Partly: true}},
		"one told of a change":  {[]sighting{f, f, c}, View{Verdict: Changed, SomeChanged: true}},
		"a majority told of it": {[]sighting{c, f, c}, View{Verdict: Changed}},
		"a change, and little else is known": {[]sighting{c, none, a}, View{Verdict: Changed, SomeChanged: true,
			Asking: true, Partly: true}},
	} {
		if got := evaluateChange(test.seen, len(test.seen)/2+1, time.Unix(1000, 0)); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
