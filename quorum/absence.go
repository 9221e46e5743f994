package quorum

import (
	"errors"

	"redlock-proxy/quorum/register"
)

// MissingVotes reports which masters do not vote now, and why.
func (c *Cluster) MissingVotes() *NoQuorumError { return c.masterSet().absence() }

// absence is MissingVotes with a note if the masters are being changed.
func (c *Cluster) absence() error { return c.withChange(c.masterSet().absence()) }

// absence reports which masters do not vote now, and why.
func (set *masterSet) absence() *NoQuorumError {
	none := newNoQuorum(len(set.masters))
	for _, m := range set.Status() {
		switch {
		case m.Err != nil:
			none.add(&MasterError{Master: m.Name, Err: m.Err})
		case m.Quarantine != nil:
			none.add(&MasterError{Master: m.Name, Err: m.Quarantine})
		default:
			none.Answered++
		}
	}
	return none
}

// translate translates errors of the register into errors of this package.
func (set *masterSet) translate(err error) error {
	if err == nil {
		return nil
	}
	var none *register.NoQuorum
	if !errors.As(err, &none) {
		return err
	}
	explained := newNoQuorum(len(set.masters))
	explained.Late, explained.Unclear = none.Late, none.Unclear
	for i, r := range none.Replies {
		switch {
		case r.State == register.Counted, r.State == register.Waiting: // a majority decided without it
			explained.Answered++
		case r.Err != nil:
			explained.add(&MasterError{Master: set.masters[i].Name(), Err: r.Err})
		}
	}
	if errors.Is(explained, ErrTooLong) && !explained.HasMajority() {
		return ErrTooLong // the masters are healthy
	}
	return explained
}
