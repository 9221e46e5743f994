package quorum

import (
	"os"
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum/guard"
)

// TestTimeUntilVotes checks that the time in a NOQUORUM error is the time until a majority votes,
// not until the last master votes.
func TestTimeUntilVotes(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		timesLeft []time.Duration
		needed    int
		want      time.Duration
	}{
		{[]time.Duration{9 * s}, 1, 9 * s},
		{[]time.Duration{9 * s, 5 * s, 7 * s}, 2, 7 * s},
		{[]time.Duration{9 * s, 5 * s, 7 * s}, 1, 5 * s},
		{[]time.Duration{9 * s, 5 * s}, 3, 9 * s}, // until both masters vote
		{[]time.Duration{0, 5 * s, 0}, 1, 5 * s},
		{[]time.Duration{0, 5 * s, 0}, 2, 0}, // the time of the second master is unknown
		{[]time.Duration{9 * s, 5 * s}, 0, 5 * s},
	} {
		if got := timeUntilVotes(slices.Clone(c.timesLeft), c.needed); got != c.want {
			t.Errorf("%v, %d needed: %v, want %v", c.timesLeft, c.needed, got, c.want)
		}
	}
}

// TestNoQuorumText checks that a NOQUORUM error names the missing part: replies, or certainty about
// the key.
func TestNoQuorumText(t *testing.T) {
	for _, c := range []struct {
		voteCount int
		causes    []error
		want      string
	}{
		{2, []error{os.ErrDeadlineExceeded}, "2 of 5 masters answered, 3 needed: m: no answer in time"},
		{3, []error{os.ErrDeadlineExceeded},
			"3 of 5 masters answered, and the state of the key is undetermined: m: no answer in time"},
		{5, nil, "5 of 5 masters answered, and the state of the key is undetermined; if it does not clear up, FORCEUNLOCK it"},
		{2, []error{&QuarantineError{Cause: guard.Flushed}}, "2 of 5 masters vote: 1 was flushed"},
		{3, []error{&QuarantineError{Cause: guard.Flushed}},
			"3 of 5 masters vote, and the state of the key is undetermined: 1 was flushed"},
	} {
		e := newNoQuorum(5)
		e.VoteCount = c.voteCount
		for _, cause := range c.causes {
			e.add(&MasterError{Master: "m", Err: cause})
		}
		if got := e.Error(); got != c.want {
			t.Errorf("%d answered, %v: %q, want %q", c.voteCount, c.causes, got, c.want)
		}
	}
	e := newNoQuorum(5)
	e.VoteCount, e.Unconfirmed = 5, true
	if got, want := e.Error(), "5 of 5 masters answered, but no majority confirmed the location of the locks"; got != want {
		t.Errorf("unconfirmed: %q, want %q", got, want)
	}
}
