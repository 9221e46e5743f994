package proxy

import (
	"context"
	"strings"

	"redlock-proxy/commands/server"
	"redlock-proxy/proxy/track"
)

// follow forwards a command whose answer is learned from.
func (f *forwarding) follow(ctx context.Context, name string, words [][]byte) error {
	if err := f.relay.open(ctx); err != nil {
		return f.refuse(1, err)
	}
	if err := f.session.flush(); err != nil {
		return err
	}
	f.noteName(name, words)
	mode, silences := track.Hush(words)
	s := track.SlotFor(name, words, len(words))
	switch {
	case silences && mode != track.Speaking, track.IsUnanswered(words):
		return f.unanswered(ctx, mode)
	case silences:
		f.relay.silence = track.Speaking
	case s.Kind == track.Reset && len(words) == 1 && f.relay.silence == track.SilentFromNow:
		f.relay.silence = track.Speaking
	}
	if f.count() == 0 {
		f.relay.unheard(s)
		f.relay.send(f.in.chunk())
		return nil
	}
	return f.sendWhole(s)
}

// noteName takes down what the client calls itself, for those who ask who holds a lock. What the
// upstream says to it is not waited for.
func (f *forwarding) noteName(name string, words [][]byte) {
	called := f.client.Name
	switch {
	case name == "reset" && len(words) == 1:
		called = ""
	case name == "client" && len(words) == 3 && strings.EqualFold(string(words[1]), "setname"):
		called = string(words[2])
	case name == "hello":
		for i := 2; i+1 < len(words); i++ {
			switch strings.ToLower(string(words[i])) {
			case "auth":
				i += 2
			case "setname":
				i++
				called = string(words[i])
			}
		}
	}
	if server.IsClientName(called) {
		f.client.Name = called
	}
}

// unanswered forwards a command that is not answered, and that may silence those
// after it. Where it is queued or refused, it is answered.
func (f *forwarding) unanswered(ctx context.Context, mode track.Silence) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	state := f.relay.know()
	s := track.Slot{Kind: track.Plain}
	switch {
	case state.Multi:
		s = track.Slot{Kind: track.Odd, N: 1}
	case state.Restricted():
		s.N = f.count()
	case f.refusedSilence(ctx, state):
		s.N = f.count()
	case mode != track.Speaking && f.relay.silence != track.SilentFromNow:
		f.relay.silence = mode
	default:
		f.count()
	}
	return f.sendWhole(s)
}

// refusedSilence reports whether a command that is not answered will be all the same,
// because the client has still to log in. A client that may not do everything may not do
// this either: then it is not known what is answered.
func (f *forwarding) refusedSilence(ctx context.Context, state track.State) bool {
	r, err := f.knowRights(ctx, state)
	if err == nil && r.refused != "" {
		return true
	}
	if err != nil || !r.all {
		f.relay.teach(func(s *track.State) { s.Doubtful = true })
	}
	return false
}
