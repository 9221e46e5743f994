package proxy

import (
	"context"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/server"
	"redlock-proxy/commands/tracking"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/detour"
	"redlock-proxy/proxy/track"
)

// follow forwards a command whose answer is learned from.
func (f *forwarding) follow(ctx context.Context, name string, words [][]byte) error {
	frame := f.in.chunk
	if other, changed := detour.Harmless(words); changed && f.keys.routes {
		words = other
		frame = func() []byte { return resp.AppendWords(nil, syntax.Strings(other)...) }
	}
	if err := f.relay.open(ctx); err != nil {
		return f.sending.refuse(ctx, frame(), 1, err)
	}
	if err := f.session.flush(); err != nil {
		return err
	}
	if done, err := f.tracks(ctx, words); done || err != nil {
		return err
	}
	defer f.keepCaching(name)()
	f.session.noteName(name, words)
	mode, silences := track.Hush(words)
	s := track.SlotFor(name, words, len(words))
	switch {
	case silences && mode != track.Speaking, track.IsUnanswered(words):
		return f.unanswered(ctx, mode, words)
	case silences:
		f.relay.silence = track.Speaking
	case s.Kind == track.Reset && len(words) == 1 && f.relay.silence == track.SilentFromNow:
		f.relay.silence = track.Speaking
	}
	if s.Kind == track.Reset && len(words) == 1 && f.client.Tracking != nil {
		f.client.Tracking.Set(tracking.Mode{})
	}
	return f.sending.sendFollowed(s, frame())
}

// tracks has the upstream carry out a CLIENT TRACKING or CACHING, and does the same for lock keys. Where the upstream's answer
// cannot be known, it reports false, and lock keys are not tracked.
func (f *forwarding) tracks(ctx context.Context, words [][]byte) (done bool, err error) {
	what := tracking.Subcommand(words)
	if what == "" || f.client.Track == nil {
		return false, nil
	}
	if err := f.asking.settle(ctx); err != nil {
		return true, err
	}
	state := f.relay.know()
	if state.Quitting || state.CanAsk() != nil || f.relay.silence != track.Speaking {
		return false, nil
	}
	if state.ProtoUnknown {
		f.asking.askProto(ctx)
	}
	f.relay.count(1, nil)
	if !f.relay.follow(track.Slot{}) { // what is tracked is lost with the connection
		return true, errOver
	}
	answer, err := f.asking.ask(ctx, f.in.chunk())
	if err != nil {
		return true, f.sending.refuse(ctx, f.in.chunk(), 1, err)
	}
	f.out.Raw(f.forClient(answer))
	mode, refused := tracking.Mode{}, ""
	if what == "tracking" {
		mode, refused = tracking.Parse(syntax.Strings(words))
	}
	switch {
	case !resp.Begins(answer, "+OK"), refused != "":
	case what == "caching" && f.client.Tracking != nil:
		f.client.Tracking.Caching()
	case mode.On, f.client.Tracking != nil:
		f.client.Track().Set(mode)
	}
	return true, nil
}

// keepCaching has a CLIENT CACHING hold beyond a command after which the upstream has it hold, too.
func (f *forwarding) keepCaching(name string) (after func()) {
	if (name != "client" && name != "multi") || !f.client.Tracking.Said() {
		return func() {}
	}
	return f.client.Tracking.Caching
}

// useCaching is told that a command was answered here. A CLIENT CACHING before it was about it, and the upstream has to learn that it is used.
func (f *forwarding) useCaching(ctx context.Context) {
	if !f.client.Tracking.Said() || f.client.Transaction.Open {
		return
	}
	f.client.Tracking.Used()
	_, _ = f.asking.askAloud(ctx, "PING") // or the connection is lost, and what is tracked with it
}

// noteName takes down what the client calls itself, for those who ask who holds a lock. What the
// upstream says to it is not waited for.
func (s *session) noteName(name string, words [][]byte) {
	called := s.client.Name
	switch {
	case name == "reset" && len(words) == 1:
		called = ""
	case name == "client" && len(words) == 3 && syntax.Lower(words[1]) == "setname":
		called = string(words[2])
	case name == "hello":
		for i := 2; i+1 < len(words); i++ {
			switch syntax.Folded(words[i]) {
			case "auth":
				i += 2
			case "setname":
				i++
				called = string(words[i])
			}
		}
	}
	if server.IsClientName(called) {
		s.client.Name = called
	}
}

// unanswered forwards a command that is not answered, and that may silence those
// after it. Where it is queued or refused, it is answered.
func (f *forwarding) unanswered(ctx context.Context, mode track.Silence, words [][]byte) error {
	if err := f.asking.settle(ctx); err != nil {
		return err
	}
	state := f.relay.know()
	s := track.Slot{Kind: track.Plain}
	switch {
	case state.Multi:
		s = track.Slot{Kind: track.Odd, N: 1}
	case state.Restricted():
		s.N = f.sending.count()
	case f.refusedSilence(ctx, words):
		s.N = f.sending.count()
	case mode != track.Speaking && f.relay.silence != track.SilentFromNow:
		f.relay.silence = mode
		f.relay.teach((*track.State).Hush)
	default:
		f.sending.count()
	}
	return f.sending.sendWhole(s)
}

// refusedSilence reports whether a command that is not answered will be all the same, because the client may not send it. Where
// that cannot be found out, the replies cannot be followed any more.
func (f *forwarding) refusedSilence(ctx context.Context, words [][]byte) bool {
	refusals, err := f.asking.Refusals(ctx, [][]string{syntax.Strings(words)})
	if err != nil {
		f.relay.teach(func(s *track.State) { s.Stream = true })
		return false
	}
	return refusals[0] != ""
}
