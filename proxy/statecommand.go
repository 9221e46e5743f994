package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/redirect"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// forwardStateCommand forwards a command whose reply may change the connection's state.
func (d *dispatcher) forwardStateCommand(ctx context.Context, name string, words [][]byte) error {
	frame := d.in.chunk
	if stripped, changed := redirect.StripRedirects(words); changed && d.keySearch.hasLockKeys {
		words = stripped
		frame = func() []byte { return resp.AppendWords(nil, syntax.Strings(stripped)...) }
	}
	if err := d.relay.open(ctx); err != nil {
		if d.relay.nodes != nil && isHandshake(name) {
			return d.refuseHandshake(err)
		}
		return d.sender.refuse(ctx, frame(), 1, err)
	}
	if err := d.session.flush(); err != nil {
		return err
	}
	if handled, err := d.forwardTracking(ctx, words); handled || err != nil {
		return err
	}
	defer d.cachingRestorer(name)()
	d.session.noteName(name, words)
	mode, isReplyMode := track.ParseReplyMode(words)
	s := track.ExpectedReplyFor(name, words, len(words))
	if s.Kind == track.Monitor && len(words) == 1 {
		if err := d.asker.waitUpstream(ctx); err != nil {
			return err
		}
		// The upstream ignores a second MONITOR.
		if state := d.relay.state(); state.Monitoring && !state.Multi && !state.Restricted() {
			s.N = 0
		}
	}
	replyless := track.ReplylessOf(words)
	if isReplyMode && mode != track.ReplyOn {
		replyless = track.NeverAnswered
	}
	switch {
	case replyless != track.Answered:
		return d.forwardReplyless(ctx, mode, words, replyless)
	case isReplyMode:
		d.relay.replyMode = track.ReplyOn
	case s.Kind == track.Reset && len(words) == 1 && d.relay.replyMode == track.ReplyOff:
		d.relay.replyMode = track.ReplyOn
	}
	if s.Kind == track.Reset && len(words) == 1 && d.client.Tracking != nil {
		d.client.Tracking.Stop()
	}
	if s.Kind == track.Reset && len(words) == 1 && d.client.KeptLocks != nil {
		d.client.KeptLocks.Clear()
	}
	return d.sender.sendStateCommand(s, frame())
}

// isHandshake reports whether clients send a command when they connect, before any other.
func isHandshake(name string) bool { return name == "hello" || name == "auth" || name == "client" }

// refuseHandshake answers a command of a new client, because the cluster's node cannot be reached.
// The client keeps its connection, so that it can take locks. For other commands the client must
// find a different node: all client libraries look for one after this error in a handshake.
func (d *dispatcher) refuseHandshake(cause error) error {
	upErr, isDown := errors.AsType[*upstream.Error](cause)
	if !isDown || upErr.IsBusy() {
		return cause
	}
	return d.sender.replyError("CLUSTERDOWN " + upErr.Error())
}

// forwardTracking forwards CLIENT TRACKING or CLIENT CACHING, and applies it to lock keys. handled
// is false for any other command. It is also false if the proxy cannot see the upstream's reply;
// then lock keys are not tracked.
func (d *dispatcher) forwardTracking(ctx context.Context, words [][]byte) (handled bool, err error) {
	subcommand := tracking.Subcommand(words)
	if subcommand == "" || d.client.NewTracking == nil {
		return false, nil
	}
	if err := d.asker.waitUpstream(ctx); err != nil {
		return true, err
	}
	state := d.relay.state()
	if state.Quitting || state.CheckCanAsk() != nil || d.relay.replyMode != track.ReplyOn {
		return false, nil
	}
	if state.ProtoUnknown {
		d.asker.askProto(ctx)
	}
	d.relay.count(1, nil)
	if !d.relay.expectStateChange(track.ExpectedReply{}) { // the tracking is lost with the connection
		return true, errStateLost
	}
	answer, err := d.asker.ask(ctx, d.in.chunk())
	if err != nil {
		return true, d.sender.refuse(ctx, d.in.chunk(), 1, err)
	}
	d.out.WriteRaw(d.withoutRedirect(answer))
	mode, refusal := tracking.Mode{}, ""
	if subcommand == "tracking" {
		mode, refusal = tracking.Parse(syntax.Strings(words))
	}
	switch {
	case !resp.HasPrefix(answer, "+OK"), refusal != "":
	case subcommand == "caching" && d.client.Tracking != nil:
		tracking.Of(d.client).RequestCaching()
	case mode.On, d.client.Tracking != nil:
		d.client.Tracking = d.client.NewTracking()
		tracking.Of(d.client).SetMode(mode)
	}
	return true, nil
}

// cachingRestorer returns a function that restores a CLIENT CACHING after a command that does not
// end it at the upstream.
func (d *dispatcher) cachingRestorer(name string) (renew func()) {
	if (name != "client" && name != "multi") || !tracking.Of(d.client).CachingRequested() {
		return func() {}
	}
	return tracking.Of(d.client).RequestCaching
}

// forwardReplyless forwards a command that gets no reply, and that may turn later replies off. The
// command does get a reply if the upstream queues or refuses it.
func (d *dispatcher) forwardReplyless(
	ctx context.Context, mode track.ReplyMode, words [][]byte, replyless track.Replyless,
) error {
	if err := d.asker.waitUpstream(ctx); err != nil {
		return err
	}
	state := d.relay.state()
	s := track.ExpectedReply{Kind: track.Plain}
	switch {
	case state.Multi:
		s = track.ExpectedReply{Kind: track.Untrackable, N: 1}
	case state.Restricted():
		s.N = d.sender.countReply()
	case d.refusesReplyless(ctx, words):
		s.N = d.sender.countReply()
	case replyless == track.MaybeAnswered && d.relay.replyMode == track.ReplyOn:
		d.relay.updateState(func(s *track.State) { s.Stream = true })
	case mode != track.ReplyOn && d.relay.replyMode != track.ReplyOff:
		d.relay.replyMode = mode
		d.relay.updateState((*track.State).DisableReplies)
	default:
		d.sender.countReply()
	}
	return d.sender.sendCommand(s)
}

// refusesReplyless reports whether the upstream will refuse a command for lack of permission. The
// command normally gets no reply, but a refusal is a reply. If the permission is unknown, replies
// can no longer be tracked.
func (d *dispatcher) refusesReplyless(ctx context.Context, words [][]byte) bool {
	refusals, err := d.asker.Refusals(ctx, [][]string{syntax.Strings(words)})
	if err != nil {
		d.relay.updateState(func(s *track.State) { s.Stream = true })
		return false
	}
	return refusals[0] != ""
}
