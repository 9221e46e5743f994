package quorum

import (
	"errors"

	"redlock-proxy/quorum/register"
)

// MissingVotes reports which masters do not vote now, and why.
func (c *Cluster) MissingVotes() *NoQuorumError { return c.masterSet().missingVotes() }

// noQuorum returns the result of MissingVotes, and notes a change of the masters that is in
// progress.
func (c *Cluster) noQuorum() error { return c.withChange(c.masterSet().missingVotes()) }

// missingVotes reports which masters do not vote now, and why.
func (set *masterSet) missingVotes() *NoQuorumError {
	noQuorum := newNoQuorum(len(set.masters))
	for _, m := range set.Status() {
		switch {
		case m.Err != nil:
			noQuorum.add(&MasterError{Master: m.Name, Err: m.Err})
		case m.Quarantine != nil:
			noQuorum.add(&MasterError{Master: m.Name, Err: m.Quarantine})
		default:
			noQuorum.VoteCount++
		}
	}
	return noQuorum
}

// translate translates errors of the register into errors of this package.
func (set *masterSet) translate(err error) error {
	if err == nil {
		return nil
	}
	var noQuorum *register.NoQuorum
	if !errors.As(err, &noQuorum) {
		return err
	}
	translated := newNoQuorum(len(set.masters))
	translated.AgreementTime, translated.Unclear = noQuorum.AgreementTime, noQuorum.Unclear
	for i, r := range noQuorum.Replies {
		switch {
		// A Waiting master counts too: the round ended before its reply.
		case r.State == register.Counted, r.State == register.Waiting:
			translated.VoteCount++
		case r.Err != nil:
			translated.add(&MasterError{Master: set.masters[i].Name(), Err: r.Err})
		}
	}
	if errors.Is(translated, ErrTooLong) && !translated.HasMajority() {
		return ErrTooLong // the masters are healthy: only the values are too long
	}
	return translated
}
