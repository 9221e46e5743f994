package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"redlock-proxy/proxy/netconn"
)

// copyReplies writes replies to the client until either connection ends or the reply copier is
// paused.
func (r *relay) copyReplies(w *netconn.Conn) {
	var deliverErr error
	deliver := func(n int) bool {
		deliverErr = r.deliver(r.readBuf.Buffer()[:n])
		return deliverErr == nil
	}
	err := w.ForEachRead(deliver)
	for errors.Is(err, os.ErrDeadlineExceeded) {
		if r.pauseNow() {
			return
		}
		err = w.ForEachRead(deliver)
	}
	if deliverErr != nil {
		err = errClientDisconnected
	}
	r.readBuf.Release()
	_ = w.Close()
	r.end(err)
}

// deliver updates the state from the upstream's bytes, and writes the client's part of these bytes
// to the client.
func (r *relay) deliver(p []byte) error {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	p, err := r.prepare(p)
	if len(p) == 0 || err != nil {
		return err
	}
	r.deliveries++
	n, err := r.writer.write(p)
	r.serverState.proxyState.traffic.bytesToClients.Add(int64(n))
	return err
}

// errBroken ends a connection because of a bug in the program.
var errBroken = errors.New("internal error")

// prepare updates the state from the upstream's bytes, and returns the bytes to write to the
// client. It waits for the turn to write. A panic ends only this client's connection. The caller
// must hold writer.mu.
func (r *relay) prepare(p []byte) (output []byte, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			r.serverState.opts.Logger.Error("internal error in the relay; report this line", "client", r.client.clientAddr(),
				"panic", problem, "stack", string(debug.Stack()))
			output, err = nil, errBroken
		}
	}()
	r.writer.waitTurn()
	r.cancelPause()
	r.lockTraffic.answered = true
	p = r.filter(p)
	if r.lockTraffic.confirmedConn != 0 {
		r.writer.signal()
	}
	if len(p) > 0 {
		r.limitWriteIf(r.tracker.State.GetsMessages())
	} else {
		r.writer.signal()
	}
	return p, nil
}

// filter tracks replies, removes the replies to internal commands, and replaces redirects. The
// caller must hold writer.mu.
func (r *relay) filter(p []byte) []byte {
	var output []byte // replaces p[:at], once a part was removed or changed
	changed := false
	at := 0
	for at < len(p) && !r.tracker.Streaming(p[at]) {
		part, err := r.tracker.Next(p[at:])
		piece := p[at : at+part.Size]
		switch {
		case part.InternalReply:
			if !changed {
				output, changed = append(output, p[:at]...), true
			}
			r.keepAnswer(piece)
		case part.Filtered:
			if !changed {
				output, changed = append(output, p[:at]...), true
			}
			output = append(output, part.Replacement...)
			if part.Redirect != "" {
				r.noteRedirect(part.Redirect)
			}
		case changed:
			output = append(output, piece...)
		}
		at += part.Size
		if err != nil {
			r.answerErr = err
			r.writer.signal()
			return output
		}
		if part.EndsInternalReply {
			r.answers, r.partialAnswer = append(r.answers, r.partialAnswer), nil
		}
	}
	if at < len(p) && r.tracker.MustFilterStream() {
		if !changed {
			output = append(output, p[:at]...)
		}
		rest, kinds := r.tracker.Redirects.FilterElements(p[at:])
		for _, kind := range kinds {
			r.noteRedirect(kind)
		}
		return append(output, rest...)
	}
	if !changed {
		return p
	}
	return append(output, p[at:]...)
}

// maxInternalReply limits the reply to an internal command, in bytes. COMMAND DOCS of a Redis with
// all its modules is about 1 MB.
const maxInternalReply = 16 << 20

// keepAnswer keeps a part of the reply to an internal command. If the reply is too large,
// keepAnswer sets answerErr, and awaitResponse then closes the connection. The caller must hold
// writer.mu.
func (r *relay) keepAnswer(part []byte) {
	if r.answerErr != nil {
		return
	}
	if len(r.partialAnswer)+len(part) <= maxInternalReply {
		r.partialAnswer = append(r.partialAnswer, part...)
		return
	}
	r.answerErr = errAnswerTooLong
	r.partialAnswer = nil
	r.writer.signal()
}

// end handles the end of the upstream's connection. If the stream of replies can continue, end
// answers pending commands with an error that names the upstream. The client's connection ends,
// too, if state was lost, if the stream of replies cannot continue, or if no command was pending.
func (r *relay) end(cause error) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.writer.waitTurn()
	if r.outdated && cause != errClientDisconnected {
		cause = r.upstream.DisconnectCause()
	}
	state, awaited := &r.tracker.State, &r.tracker.AwaitedReplies
	pending := awaited.PendingCount()
	if r.internalReplyFailed && r.tracker.InsideInternalReply() {
		r.tracker.Begin() // the partial reply was not for the client
	}
	resumable := !r.tracker.InsideReply() && !state.Multi && !state.GetsMessages() &&
		!state.Stream && !state.Quitting && !awaited.HasIrreplaceable()
	failsPending := resumable && pending > 0 && !r.halfClosed && cause != errClientDisconnected
	r.mustEnd = r.mustEnd || !resumable || pending == 0 && !r.internalReplyFailed ||
		r.stateful || r.halfClosed || cause == errClientDisconnected
	if r.nodes != nil { // a cluster client notices a lost node by its connection
		r.mustEnd, failsPending = true, false
		if cause != errClientDisconnected {
			r.nodes.cluster.RequestRefresh()
		}
	}
	r.tracker.RecordDisconnect(r.upstream.DB())
	r.disconnected, r.internalReplyFailed = true, false
	r.writer.changed.Broadcast()
	if r.mustEnd {
		r.client.end()
	}
	if failsPending {
		r.failPending(pending, cause)
	}
}

// failPending answers n commands that the upstream will never answer. It writes in pieces, because
// n has no bound, and unlocks writer.mu after each piece and while it waits for the client. The
// relay's fields already describe the lost connection. The caller must hold writer.mu.
func (r *relay) failPending(n int, cause error) {
	text := r.disconnectReply(cause)
	batch := max(1, maxPending/len(text))
	piece := []byte(strings.Repeat(text, min(n, batch)))
	for err := error(nil); n > 0 && err == nil; n -= batch {
		r.limitWriteIf(r.mustEnd) // a client that stays may take any time to read
		var written int
		written, err = r.writer.writeReplies(0, piece[:min(n, batch)*len(text)])
		r.serverState.proxyState.traffic.bytesToClients.Add(int64(written))
		r.deliveries++
		r.writer.yield()
	}
	r.writer.signal()
}

// disconnectReply returns the reply to a command that the upstream has not answered.
func (r *relay) disconnectReply(cause error) string {
	return "-" + r.upstream.Failure(cause).Reply() + " before it answered: the command may or may not have taken effect\r\n"
}

var (
	errNoAnswer      = errors.New("no answer in time to the proxy's own command")
	errAnswerTooLong = fmt.Errorf("its answer to the proxy's own command is longer than %d bytes", maxInternalReply)
)

// startCopier starts the reply copier.
func (r *relay) startCopier(ctx context.Context) {
	w := r.conn
	stop := context.AfterFunc(ctx, func() { _ = w.SetWriteDeadline(pastDeadline) })
	r.copier.Go(func() {
		defer stop()
		r.copyReplies(w)
	})
}

// pause ends the reply copier so that the client can be parked, and reports whether that succeeded.
// It does not wait for the client to read a reply, because the session must continue to read from
// the client.
//
// It waits until the copier has returned. Otherwise the end of the session's context could set a
// write deadline after the client is parked, and later writes to the upstream would fail.
func (r *relay) pause() bool {
	ok, paused := r.pauseCopier()
	if paused {
		r.copier.Wait()
	}
	return ok
}

// pauseCopier asks the reply copier to end, and waits until it ends or delivers a reply. ok is set
// if the client can be parked, paused is set if the copier has ended because of this request.
func (r *relay) pauseCopier() (ok, paused bool) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	switch {
	case r.writer.writing:
		r.activity.Record() // so that parking is tried again
		return false, false
	case r.conn == nil || r.disconnected:
		return true, false
	case !r.conn.CanPark():
		return false, false
	}
	r.pauseRequested = true
	_ = r.conn.SetReadDeadline(pastDeadline)
	r.writer.waiters++
	for r.pauseRequested && !r.disconnected {
		r.writer.changed.Wait()
	}
	r.writer.waiters--
	r.pauseRequested = false
	return r.paused, r.paused
}

// cancelPause makes a pause fail because a reply has arrived. The caller must hold writer.mu.
func (r *relay) cancelPause() {
	if r.pauseRequested {
		r.pauseRequested = false
		r.activity.Record() // so that parking is tried again
		r.writer.signal()
	}
}

// pauseNow pauses the reply copier, after it has stopped reading. It returns false if the pause was
// canceled.
func (r *relay) pauseNow() bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	_ = r.conn.SetReadDeadline(time.Time{})
	if !r.pauseRequested {
		return false
	}
	r.readBuf.Release()
	r.conn.FreeMemory()
	r.pauseRequested, r.paused = false, true
	r.writer.signal()
	return true
}

// resume restarts a paused reply copier.
func (r *relay) resume(ctx context.Context) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if r.paused {
		r.paused = false
		r.conn.Unpark()
		r.startCopier(ctx)
	}
}
