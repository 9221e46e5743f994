package availability

import (
	"errors"
	"testing"

	"redlock-proxy/quorum/location"
)

func TestDecide(t *testing.T) {
	oomErr := errors.New("OOM command not allowed")
	const (
		pausedCause   = "the locks are being moved to the masters: commands on lock keys wait"
		changingCause = "the masters are being changed, or the locks moved: commands on locks wait"
	)
	for _, c := range []struct {
		name   string
		inputs Inputs
		state  State
		cause  string
	}{
		{"all is well", Inputs{Masters: 3, VotingMasters: 3, Place: location.Masters, Known: true}, Available, ""},
		{"a majority votes", Inputs{Masters: 3, VotingMasters: 2, Place: location.Masters, Known: true}, Available, ""},
		{"the upstream is of no account", Inputs{Masters: 3, VotingMasters: 3, Place: location.Masters, Known: true,
			UpstreamErr: oomErr}, Available, ""},
		{"the locks are at the upstream", Inputs{Masters: 3, VotingMasters: 3, Place: location.Upstream, Known: true, Movable: true},
			Available, ""},
		{"which this proxy does not have", Inputs{Masters: 3, VotingMasters: 3, Place: location.Upstream, Known: true}, Unavailable,
			"the locks are at the upstream, which this proxy does not have"},
		{"which is full", Inputs{Masters: 3, VotingMasters: 3, Place: location.Upstream, Known: true, Movable: true,
			UpstreamErr: oomErr}, Unavailable,
			"the upstream, which holds the locks, refuses writes: OOM command not allowed"},
		{"too few vote", Inputs{Masters: 4, VotingMasters: 2, Place: location.Masters, Known: true}, Unavailable,
			"2 of 4 masters vote, 3 needed"},
		{"too few vote for the upstream", Inputs{Masters: 3, VotingMasters: 1, Place: location.Upstream, Known: true},
			Unavailable, "1 of 3 masters vote, 2 needed"},
		{"a move", Inputs{Masters: 3, VotingMasters: 3, Place: location.MovingToMasters, Known: true}, Paused, pausedCause},
		{"its decision", Inputs{Masters: 3, VotingMasters: 0, Place: location.MovingToMasters, Changing: true}, Paused, pausedCause},
		{"a move without a majority", Inputs{Masters: 3, VotingMasters: 1, Place: location.MovingToMasters, Known: true}, Unavailable,
			"1 of 3 masters vote, 2 needed"},
		{"a change of the masters", Inputs{Masters: 3, VotingMasters: 0, Place: location.Masters, Changing: true}, Paused, changingCause},
		{"the place is not known", Inputs{Masters: 3, VotingMasters: 3, Place: location.Masters}, Unavailable,
			"the location of the locks is unknown"},
	} {
		if got := c.inputs.Decide(); got != (Verdict{c.state, c.cause}) {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		err             error
		shared, refuses bool
	}{
		{nil, true, false}, {nil, false, false},
		{errors.New("OOM command not allowed"), false, true},
		{errors.New("NOREPLICAS Not enough good replicas"), false, true},
		{errors.New("NOAUTH Authentication required."), false, false},
		{errors.New("NOAUTH Authentication required."), true, true},
		{errors.New("NOPERM this user"), false, false}, {errors.New("NOPERM this user"), true, true},
	} {
		if got := Refusal(c.err, c.shared); (got != nil) != c.refuses {
			t.Errorf("%v, shared %v: %v", c.err, c.shared, got)
		}
	}
}
