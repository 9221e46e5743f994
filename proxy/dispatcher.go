package proxy

import (
	"redlock-proxy/commands"
	"redlock-proxy/commands/command"
	"redlock-proxy/proxy/redirect"
	"redlock-proxy/proxy/track"
)

// dispatcher forwards what a session has scanned, and decides about commands that are not simply
// forwarded. It belongs to the session's goroutine.
type dispatcher struct {
	session *session
	relay   *relay
	in      *input
	out     *command.Reply
	client  *command.Client
	table   *commands.Table

	asker  asker
	sender sender
	keys   keySearch
	auth   authChecker
	locks  locationRouter

	special            bool  // the name of a command that needs a decision was scanned, or invalid bytes
	requestErr         error // why the bytes are no valid request, or must not be forwarded
	checkingLogin      bool  // the client's login must be checked before more of the frame is read
	sendingLockCommand bool  // the current frame is a command on lock keys that is sent in parts
}

func newDispatcher(s *session) *dispatcher {
	table := s.shared.opts.Table
	d := &dispatcher{
		session: s, relay: s.relay, in: s.in, out: &s.out, client: &s.client, table: table,
		asker: asker{session: s, relay: s.relay},
	}
	d.sender = sender{session: s, relay: s.relay, asker: &d.asker, in: s.in, out: &s.out, client: &s.client}
	d.keys = keySearch{in: s.in, table: table, user: &s.login, hasLockKeys: table.LockKeys().Any()}
	d.auth = authChecker{session: s, relay: s.relay, asker: &d.asker, sender: &d.sender, in: s.in, client: &s.client}
	d.locks = locationRouter{relay: s.relay, asker: &d.asker, client: &s.client, table: s.shared.opts.Table}
	if !d.isLockServer() { // at a lock server only the masters report where the locks are
		d.locks.places, d.locks.unmoved = s.shared.opts.LockLocation, s.shared.opts.Unmoved
	}
	return d
}

// isLockServer reports whether there is no upstream.
func (d *dispatcher) isLockServer() bool { return d.relay.up == nil }

// situation returns the client's state, as far as it is known before the upstream has answered all
// commands.
func (d *dispatcher) situation() commands.Situation {
	tx := &d.client.Transaction
	return commands.Situation{InMulti: tx.Open, Watching: tx.Watching(), Down: tx.Down}
}

// connection returns the state of the client's connection, after the upstream has answered all
// commands.
func (d *dispatcher) connection() commands.Connection {
	state := d.relay.state()
	return commands.Connection{
		Settled: true, Quitting: state.Quitting, Stream: state.Stream, Multi: state.Multi,
		Queued: state.Queued, Watching: state.Watching,
		Restricted: state.Restricted(), Unsure: state.ProtoUnknown,
		Monitoring: state.Monitoring, RepliesOff: d.relay.replyMode != track.Speaking,
	}
}

// forgetFrame resets the state that belongs to the current frame.
func (d *dispatcher) forgetFrame() {
	d.in.frame = d.in.scanned
	d.keys.search = search{}
	d.auth.resetFrame()
}

// forClient returns the reply that the client gets in place of a whole reply of the upstream. If
// lock keys are configured, that is never a redirect.
func (d *dispatcher) forClient(answer []byte) []byte {
	if !d.keys.hasLockKeys {
		return answer
	}
	instead, turned := redirect.Replace(answer)
	if turned != "" {
		d.relay.noteRedirect(turned)
	}
	return instead
}
