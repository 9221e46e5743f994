package quorum

import (
	"errors"
	"time"

	"redlock-proxy/quorum/messages"
	"redlock-proxy/quorum/vote"
)

// listening is what a generation's listener does.
func (g *generation) listening() messages.Options {
	opts := messages.Options{
		Need: vote.ReadQuorum(len(g.masters)), Wait: max(2*g.of.opts.MasterTimeout, minListenWait), Logger: g.log, Rand: g.rand, Own: messages.NewSource(), Deliver: func(Message) {},
	}
	for _, m := range g.masters {
		opts.Servers = append(opts.Servers, m)
	}
	if all := g.of.messages; all != nil {
		opts.Own, opts.Channel, opts.Deliver = all.source, all.channel, all.deliver
	}
	return opts
}

// unheard is which masters cannot be listened to, and why.
func (g *generation) unheard() *NoQuorumError {
	none := newNoQuorum(len(g.masters))
	for i, err := range g.listener().Causes() {
		switch {
		case g.listener().Hears(i):
			none.Answered++
		case err == nil:
			none.add(&MasterError{Master: g.masters[i].Name(), Err: errNotYet})
		default:
			none.add(&MasterError{Master: g.masters[i].Name(), Err: err})
		}
	}
	return none
}

// errNotYet is the cause where a master has not said yet that it brings messages.
var errNotYet = errors.New("it does not bring messages yet")

// minListenWait is how long one who is to get messages waits for the masters, at the least.
const minListenWait = time.Second
