package quorum

import (
	"errors"
	"time"

	"redlock-proxy/quorum/messages"
	"redlock-proxy/quorum/vote"
)

// listenerOptions returns the options of the set's message listener.
func (set *masterSet) listenerOptions() messages.Options {
	opts := messages.Options{
		MinMasters: vote.ReadQuorum(len(set.masters)), JoinTimeout: max(2*set.cluster.opts.Access.Timeout, minListenWait),
		Logger: set.log, Rand: set.rand, OwnSource: messages.NewSource(), Deliver: func(Message) {},
	}
	for _, m := range set.masters {
		opts.Servers = append(opts.Servers, m)
	}
	if shared := set.cluster.messages; shared != nil {
		opts.OwnSource, opts.Channel, opts.Deliver = shared.source, shared.channel, shared.deliver
	}
	return opts
}

// missingSubscriptions reports on which masters this proxy has no subscription, and why.
func (set *masterSet) missingSubscriptions() *NoQuorumError {
	missing := newNoQuorum(len(set.masters))
	for i, err := range set.listener().Causes() {
		switch {
		case set.listener().IsConnected(i):
			missing.VoteCount++
		case err == nil:
			missing.add(&MasterError{Master: set.masters[i].Name(), Err: errNotSubscribed})
		default:
			missing.add(&MasterError{Master: set.masters[i].Name(), Err: err})
		}
	}
	return missing
}

// errNotSubscribed is the cause for a master that has not confirmed the subscription yet.
var errNotSubscribed = errors.New("not subscribed to messages yet")

// minListenWait is the minimum JoinTimeout: the time limit for the connections that a new
// subscriber needs.
const minListenWait = time.Second
