package proxy

import (
	"redlock-proxy/commands"
	"redlock-proxy/commands/command"
	"redlock-proxy/proxy/detour"
	"redlock-proxy/proxy/track"
)

// dispatcher forwards what a session has scanned, and decides what becomes of commands that are not
// just forwarded. It belongs to the session's goroutine.
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

	special bool  // the name of a command was scanned that is not just forwarded, or no request
	bad     error // why the bytes are no request, or not one that is forwarded
	holding bool  // whether the client has logged in must be found out before more of the frame is read
	carries bool  // the current frame is a command on lock keys that is sent in parts
}

func newDispatcher(s *session) *dispatcher {
	d := &dispatcher{session: s, relay: s.relay, in: s.in, out: &s.out, client: &s.client, table: s.shared.opts.Table, asker: asker{session: s, relay: s.relay}}
	d.sender = sender{session: s, relay: s.relay, asker: &d.asker, in: s.in, out: &s.out, client: &s.client}
	d.keys = keySearch{in: s.in, table: s.shared.opts.Table, who: &s.who, routes: s.shared.opts.Table.LockKeys().Any()}
	d.auth = authChecker{session: s, relay: s.relay, asker: &d.asker, sender: &d.sender, in: s.in, client: &s.client}
	d.locks = locationRouter{relay: s.relay, asker: &d.asker, client: &s.client, table: s.shared.opts.Table}
	if !d.isLockServer() { // there the masters alone say where the locks are
		d.locks.places, d.locks.unmoved = s.shared.opts.Places, s.shared.opts.Unmoved
	}
	return d
}

// isLockServer reports whether there is no upstream: what is not carried out here is an error.
func (d *dispatcher) isLockServer() bool { return d.relay.up == nil }

// situation is what is known of the client before the upstream has answered what was sent.
func (d *dispatcher) situation() commands.Situation {
	tx := &d.client.Transaction
	return commands.Situation{InMulti: tx.Open, Watching: tx.Watching(), Down: tx.Down}
}

// connection is what is known of the client's connection, where the upstream has answered all.
func (d *dispatcher) connection() commands.Connection {
	state := d.relay.know()
	return commands.Connection{
		Settled: true, Quitting: state.Quitting, Stream: state.Stream, Multi: state.Multi, Queued: state.Queued, Watching: state.Watching,
		Restricted: state.Restricted(), Unsure: state.ProtoUnknown, Monitoring: state.Monitoring, Silent: d.relay.silence != track.Speaking,
	}
}

// forgetFrame ends what holds for one frame.
func (d *dispatcher) forgetFrame() {
	d.in.frame = d.in.scanned
	d.keys.search = search{}
	d.auth.forget()
}

// forClient is a whole answer as the client may have it: where there are lock keys it is led
// nowhere else.
func (d *dispatcher) forClient(answer []byte) []byte {
	if !d.keys.routes {
		return answer
	}
	instead, turned := detour.Turn(answer)
	if turned != "" {
		d.relay.led(turned)
	}
	return instead
}
