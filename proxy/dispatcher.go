package proxy

import (
	"redlock-proxy/commands"
	"redlock-proxy/commands/command"
	"redlock-proxy/proxy/track"
)

// dispatcher forwards the bytes that a session has scanned, and decides about commands that are not
// simply forwarded. It belongs to the session's goroutine.
type dispatcher struct {
	session *session
	relay   *relay
	in      *input
	out     *command.Reply
	client  *command.Client
	table   *commands.Table

	asker     asker
	sender    sender
	keySearch keySearch
	auth      authChecker
	router    locationRouter

	needsDecision      bool  // the scanned command is not just forwarded, or its bytes are invalid
	requestErr         error // the reason why the bytes are invalid or must not be forwarded
	checkingLogin      bool  // the client's login must be checked before more of the frame is read
	sendingLockCommand bool  // the current frame is a command on lock keys that is sent in parts
	nodeLost           bool  // the cluster's node could not be reached for the current command
	wasSlow            bool  // the last own command was slow; its reply is not flushed yet
}

func newDispatcher(s *session) *dispatcher {
	table := s.serverState.opts.Table
	d := &dispatcher{
		session: s, relay: s.relay, in: s.in, out: &s.out, client: &s.client, table: table,
		asker: asker{session: s, relay: s.relay},
	}
	d.sender = sender{session: s, relay: s.relay, asker: &d.asker, in: s.in, out: &s.out, client: &s.client}
	d.keySearch = keySearch{in: s.in, table: table, user: &s.login, hasLockKeys: table.LockKeys().HasPatterns()}
	d.auth = authChecker{session: s, relay: s.relay, asker: &d.asker, sender: &d.sender, in: s.in, client: &s.client}
	d.router = locationRouter{relay: s.relay, asker: &d.asker, client: &s.client, table: s.serverState.opts.Table}
	// Without a table for the upstream, the locks are always on the masters.
	if s.serverState.opts.UpstreamTable != nil {
		d.router.lockLocation, d.router.upstreamTable = s.serverState.opts.LockLocation, s.serverState.opts.UpstreamTable
	}
	return d
}

// isLockServer reports whether there is no upstream.
func (d *dispatcher) isLockServer() bool { return d.relay.upstream == nil }

// situation returns the client's state, as far as it is known before the upstream has answered all
// commands.
func (d *dispatcher) situation() commands.Situation {
	tx := &d.client.Transaction
	return commands.Situation{InMulti: tx.Open, Watching: tx.HasWatchedKeys(), UpstreamError: tx.UpstreamError}
}

// connection returns the state of the client's connection. It is called when the upstream has
// answered all commands.
func (d *dispatcher) connection() commands.Connection {
	state := d.relay.state()
	return commands.Connection{
		Settled: true, Quitting: state.Quitting, Stream: state.Stream, Multi: state.Multi,
		Queued: state.Queued, Watching: state.Watching,
		Restricted: state.Restricted(), ProtocolUncertain: state.ProtoUnknown,
		Monitoring: state.Monitoring, RepliesOff: d.relay.replyMode != track.ReplyOn,
	}
}

// resetFrame resets the state that belongs to the current frame.
func (d *dispatcher) resetFrame() {
	d.in.frameStart = d.in.scanEnd
	d.keySearch.search = search{}
	d.auth.resetFrame()
}

// withoutRedirect returns a whole reply of the upstream for the client. If lock keys are
// configured, or the upstream is a cluster, it replaces a redirect.
func (d *dispatcher) withoutRedirect(answer []byte) []byte {
	if !d.keySearch.hasLockKeys && d.relay.nodes == nil {
		return answer
	}
	return d.relay.withoutRedirect(answer)
}
