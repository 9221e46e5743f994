package proxy

import (
	"context"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/redirect"
	"redlock-proxy/proxy/track"
)

// follow forwards a command whose reply may change the connection's state.
func (d *dispatcher) follow(ctx context.Context, name string, words [][]byte) error {
	frame := d.in.chunk
	if other, changed := redirect.StripRedirects(words); changed && d.keys.hasLockKeys {
		words = other
		frame = func() []byte { return resp.AppendWords(nil, syntax.Strings(other)...) }
	}
	if err := d.relay.open(ctx); err != nil {
		return d.sender.refuse(ctx, frame(), 1, err)
	}
	if err := d.session.flush(); err != nil {
		return err
	}
	if done, err := d.forwardTracking(ctx, words); done || err != nil {
		return err
	}
	defer d.keepCaching(name)()
	d.session.noteName(name, words)
	mode, silences := track.ParseReplyMode(words)
	s := track.SlotFor(name, words, len(words))
	switch {
	case silences && mode != track.Speaking, track.IsUnanswered(words):
		return d.unanswered(ctx, mode, words)
	case silences:
		d.relay.replyMode = track.Speaking
	case s.Kind == track.Reset && len(words) == 1 && d.relay.replyMode == track.SilentFromNow:
		d.relay.replyMode = track.Speaking
	}
	if s.Kind == track.Reset && len(words) == 1 && d.client.Tracking != nil {
		d.client.Tracking.Stop()
	}
	return d.sender.sendFollowed(s, frame())
}

// forwardTracking forwards CLIENT TRACKING or CLIENT CACHING, and applies it to lock keys. If it
// cannot learn the upstream's reply, it reports false, and lock keys are not tracked.
func (d *dispatcher) forwardTracking(ctx context.Context, words [][]byte) (done bool, err error) {
	what := tracking.Subcommand(words)
	if what == "" || d.client.Track == nil {
		return false, nil
	}
	if err := d.asker.waitUpstream(ctx); err != nil {
		return true, err
	}
	state := d.relay.state()
	if state.Quitting || state.CanAsk() != nil || d.relay.replyMode != track.Speaking {
		return false, nil
	}
	if state.ProtoUnknown {
		d.asker.askProto(ctx)
	}
	d.relay.count(1, nil)
	if !d.relay.follow(track.Expected{}) { // the tracking is lost with the connection
		return true, errStateLost
	}
	answer, err := d.asker.ask(ctx, d.in.chunk())
	if err != nil {
		return true, d.sender.refuse(ctx, d.in.chunk(), 1, err)
	}
	d.out.Raw(d.forClient(answer))
	mode, refused := tracking.Mode{}, ""
	if what == "tracking" {
		mode, refused = tracking.Parse(syntax.Strings(words))
	}
	switch {
	case !resp.Begins(answer, "+OK"), refused != "":
	case what == "caching" && d.client.Tracking != nil:
		tracking.Of(d.client).Caching()
	case mode.On, d.client.Tracking != nil:
		d.client.Tracking = d.client.Track()
		tracking.Of(d.client).Set(mode)
	}
	return true, nil
}

// keepCaching returns a function that renews a CLIENT CACHING after a command that does not use it
// up at the upstream.
func (d *dispatcher) keepCaching(name string) (after func()) {
	if (name != "client" && name != "multi") || !tracking.Of(d.client).CachingRequested() {
		return func() {}
	}
	return tracking.Of(d.client).Caching
}

// unanswered forwards a command that gets no reply, and that may turn later replies off. The
// command does get a reply if the upstream queues or refuses it.
func (d *dispatcher) unanswered(ctx context.Context, mode track.ReplyMode, words [][]byte) error {
	if err := d.asker.waitUpstream(ctx); err != nil {
		return err
	}
	state := d.relay.state()
	s := track.Expected{Kind: track.Plain}
	switch {
	case state.Multi:
		s = track.Expected{Kind: track.Untrackable, N: 1}
	case state.Restricted():
		s.N = d.sender.countReply()
	case d.replyModeRefused(ctx, words):
		s.N = d.sender.countReply()
	case mode != track.Speaking && d.relay.replyMode != track.SilentFromNow:
		d.relay.replyMode = mode
		d.relay.updateState((*track.State).DisableReplies)
	default:
		d.sender.countReply()
	}
	return d.sender.sendWhole(s)
}

// replyModeRefused reports whether the upstream will refuse a command that normally gets no reply,
// and so answer it, for lack of permission. If that is unknown, replies can no longer be tracked.
func (d *dispatcher) replyModeRefused(ctx context.Context, words [][]byte) bool {
	refusals, err := d.asker.Refusals(ctx, [][]string{syntax.Strings(words)})
	if err != nil {
		d.relay.updateState(func(s *track.State) { s.Stream = true })
		return false
	}
	return refusals[0] != ""
}
