package quorum

import (
	"errors"

	"redlock-proxy/quorum/register"
)

// Absence says which masters do not vote now, and why.
func (c *Cluster) Absence() *NoQuorumError { return c.now().absence() }

// absence is the error of what cannot be known because of the masters that do not vote now.
func (c *Cluster) absence() error { return c.named(c.now().absence()) }

// absence is which masters do not vote now, and why.
func (g *generation) absence() *NoQuorumError {
	none := newNoQuorum(len(g.masters))
	for _, m := range g.Status() {
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

// explain gives the errors of the register their names.
func (g *generation) explain(err error) error {
	if err == nil {
		return nil
	}
	var none *register.NoQuorum
	if !errors.As(err, &none) {
		return err
	}
	explained := newNoQuorum(len(g.masters))
	explained.Late, explained.Unclear = none.Late, none.Unclear
	for i, r := range none.Replies {
		switch {
		case r.State == register.Counted, r.State == register.Waiting: // it was not waited for, because of the others
			explained.Answered++
		case r.Err != nil:
			explained.add(&MasterError{Master: g.masters[i].Name(), Err: r.Err})
		}
	}
	if errors.Is(explained, ErrTooLong) && !explained.HasMajority() {
		return ErrTooLong // the masters are well
	}
	return explained
}
