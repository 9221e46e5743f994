package server

import (
	"errors"
	"testing"

	"redlock-proxy/quorum"
)

func TestReadiness(t *testing.T) {
	votes, waits := quorum.MasterStatus{}, quorum.MasterStatus{Standing: quorum.Quarantined}
	dead := quorum.MasterStatus{Standing: quorum.Down, Err: errors.New("connection refused")}
	for _, c := range []struct {
		name            string
		all             []quorum.MasterStatus
		voting, masters int
		cause           string
	}{
		{"all vote", []quorum.MasterStatus{votes, votes, votes}, 3, 3, ""},
		{"a majority", []quorum.MasterStatus{votes, waits, dead, votes, votes}, 3, 5, ""},
		{"no majority", []quorum.MasterStatus{votes, waits, dead, votes, waits}, 2, 5, "2 of 5 masters vote, 3 needed"},
	} {
		voting, masters, cause := Readiness(c.all)
		if voting != c.voting || masters != c.masters || cause != c.cause {
			t.Errorf("%s: got %d of %d, %q, want %d of %d, %q", c.name, voting, masters, cause, c.voting, c.masters, c.cause)
		}
	}
}
