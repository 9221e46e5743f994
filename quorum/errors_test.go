package quorum

import (
	"os"
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum/guard"
)

// The time that a NOQUORUM tells is when there is a majority again, not when the last master votes.
func TestUntilEnough(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		left   []time.Duration
		needed int
		want   time.Duration
	}{
		{[]time.Duration{9 * s}, 1, 9 * s},
		{[]time.Duration{9 * s, 5 * s, 7 * s}, 2, 7 * s},
		{[]time.Duration{9 * s, 5 * s, 7 * s}, 1, 5 * s},
		{[]time.Duration{9 * s, 5 * s}, 3, 9 * s}, // others are down as well: all of these are needed
		{[]time.Duration{0, 5 * s, 0}, 1, 5 * s},
		{[]time.Duration{0, 5 * s, 0}, 2, 0}, // of the second it is not known
		{[]time.Duration{9 * s, 5 * s}, 0, 5 * s},
	} {
		if got := untilEnough(slices.Clone(c.left), c.needed); got != c.want {
			t.Errorf("%v, %d needed: %v, want %v", c.left, c.needed, got, c.want)
		}
	}
}

// The sentence of a NOQUORUM says what was missing: answers, or what the answers could not tell.
func TestNoQuorumSays(t *testing.T) {
	for _, c := range []struct {
		answered int
		causes   []error
		want     string
	}{
		{2, []error{os.ErrDeadlineExceeded}, "2 of 5 masters answered, 3 needed: m: no answer in time"},
		{3, []error{os.ErrDeadlineExceeded}, "3 of 5 masters answered, and the state of the key is undetermined: m: no answer in time"},
		{5, nil, "5 of 5 masters answered, and the state of the key is undetermined; if it does not clear up, FORCEUNLOCK it"},
		{2, []error{&QuarantineError{Why: guard.Flushed}}, "2 of 5 masters vote: 1 was flushed"},
		{3, []error{&QuarantineError{Why: guard.Flushed}}, "3 of 5 masters vote, and the state of the key is undetermined: 1 was flushed"},
	} {
		e := newNoQuorum(5)
		e.Answered = c.answered
		for _, cause := range c.causes {
			e.add(&MasterError{Master: "m", Err: cause})
		}
		if got := e.Error(); got != c.want {
			t.Errorf("%d answered, %v: %q, want %q", c.answered, c.causes, got, c.want)
		}
	}
	e := newNoQuorum(5)
	e.Answered, e.Unconfirmed = 5, true
	if got, want := e.Error(), "5 of 5 masters answered, and no majority of them confirmed where the locks are"; got != want {
		t.Errorf("unconfirmed: %q, want %q", got, want)
	}
}
