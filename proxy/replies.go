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

// copyReplies brings replies to the client until either connection ends or the reply copier is
// paused.
func (r *relay) copyReplies(w *netconn.Conn) {
	var undelivered error
	deliver := func(n int) bool {
		undelivered = r.deliver(r.loan.Room()[:n])
		return undelivered == nil
	}
	err := w.Pump(deliver)
	for errors.Is(err, os.ErrDeadlineExceeded) {
		if r.pauseNow() {
			return
		}
		err = w.Pump(deliver)
	}
	if undelivered != nil {
		err = errClientLeft
	}
	r.loan.Release()
	_ = w.Close()
	r.end(err)
}

// deliver updates the state by what the upstream sent, and writes the client's part to the client.
func (r *relay) deliver(p []byte) error {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	p, err := r.prepare(p)
	if len(p) == 0 || err != nil {
		return err
	}
	r.deliveries++
	n, err := r.line.write(p)
	r.shared.traffic.toClients.Add(int64(n))
	return err
}

// errBroken ends a connection because of a bug in the program.
var errBroken = errors.New("internal error")

// prepare updates the state by what the upstream sent, and returns the bytes to write to the
// client. It waits for the turn to write. A panic costs this client its connection, and no other
// client. It is called with mu held.
func (r *relay) prepare(p []byte) (kept []byte, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			r.shared.opts.Logger.Error("relay failed", "client", r.client.origin(),
				"panic", problem, "stack", string(debug.Stack()))
			kept, err = nil, errBroken
		}
	}()
	r.line.waitTurn()
	r.cancelPause()
	r.lockTraffic.answered = true
	p = r.filter(p)
	if r.lockTraffic.confirmedDial != 0 {
		r.line.signal()
	}
	if len(p) > 0 {
		r.limitWriteIf(r.tracker.State.GetsUnsolicited())
	} else {
		r.line.signal()
	}
	return p, nil
}

// filter tracks replies, removes those to the proxy's own commands, and replaces redirects. It is
// called with mu held.
func (r *relay) filter(p []byte) []byte {
	var kept []byte // of p[:at], once a part was removed
	taken := false
	at := 0
	for at < len(p) && !r.tracker.Streaming(p[at]) {
		part, err := r.tracker.Next(p[at:])
		piece := p[at : at+part.Size]
		switch {
		case part.Own:
			if !taken {
				kept, taken = append(kept, p[:at]...), true
			}
			r.keepAnswer(piece)
		case part.Filtered:
			if !taken {
				kept, taken = append(kept, p[:at]...), true
			}
			kept = append(kept, part.Instead...)
			if part.Redirect != "" {
				r.noteRedirect(part.Redirect)
			}
		case taken:
			kept = append(kept, piece...)
		}
		at += part.Size
		if err != nil {
			r.answerErr = err
			r.line.signal()
			return kept
		}
		if part.Whole {
			r.answers, r.partialAnswer = append(r.answers, r.partialAnswer), nil
		}
	}
	if !taken {
		return p
	}
	return append(kept, p[at:]...)
}

// maxAnswer limits the reply to a command of the proxy's own, in bytes. COMMAND DOCS of a Redis
// with all its modules is about 1 MB.
const maxAnswer = 16 << 20

// keepAnswer keeps a part of a reply to the proxy's own command. If the reply is too large, it sets
// answerErr, and the connection will be closed. It is called with mu held.
func (r *relay) keepAnswer(part []byte) {
	if r.answerErr != nil {
		return
	}
	if len(r.partialAnswer)+len(part) <= maxAnswer {
		r.partialAnswer = append(r.partialAnswer, part...)
		return
	}
	r.answerErr = errTooMuch
	r.partialAnswer = nil
	r.line.signal()
}

// end handles the end of the upstream's connection. It answers pending commands with an error that
// names the upstream. The client may continue, unless its connection had state that is lost, or the
// state of its own stream is unknown.
func (r *relay) end(cause error) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.line.waitTurn()
	if r.outdated && cause != errClientLeft {
		cause = r.up.DisconnectCause()
	}
	state, awaited := &r.tracker.State, &r.tracker.Awaited
	owed := awaited.Pending()
	if r.closedUnanswered && r.tracker.InsideOwn() {
		r.tracker.Begin() // the partial reply was not for the client
	}
	resumable := !r.tracker.Inside() && !state.Multi && !state.GetsUnsolicited() &&
		!state.Stream && !state.Quitting && !awaited.Closes()
	failsPending := resumable && owed > 0 && !r.halfClosed && cause != errClientLeft
	r.mustEnd = r.mustEnd || !resumable || owed == 0 && !r.closedUnanswered ||
		r.stateful || r.halfClosed || cause == errClientLeft
	r.tracker.Lost(r.up.DB())
	r.gone, r.closedUnanswered = true, false
	r.line.changed.Broadcast()
	if r.mustEnd {
		r.client.end()
	}
	if failsPending {
		r.failPending(owed, cause)
	}
}

// failPending answers n commands that the upstream will never answer. It writes in pieces, because
// n has no bound. mu is unlocked while the client does not take a piece, and after each piece: the
// relay's fields already describe the lost connection. It is called with mu held.
func (r *relay) failPending(n int, cause error) {
	text := r.lostReply(cause)
	some := max(1, maxPending/len(text))
	piece := []byte(strings.Repeat(text, min(n, some)))
	for err := error(nil); n > 0 && err == nil; n -= some {
		r.limitWriteIf(r.mustEnd) // else the client asked for these replies
		var taken int
		taken, err = r.line.writeReplies(0, piece[:min(n, some)*len(text)])
		r.shared.traffic.toClients.Add(int64(taken))
		r.deliveries++
		r.line.yield()
	}
	r.line.signal()
}

// lostReply returns the reply to a command that the upstream has not answered.
func (r *relay) lostReply(cause error) string {
	return "-" + r.up.Failure(cause).Reply() + " before it answered: the command may or may not have taken effect\r\n"
}

var (
	errNoAnswer = errors.New("no answer in time to the proxy's own command")
	errTooMuch  = fmt.Errorf("its answer to the proxy's own command is longer than %d bytes", maxAnswer)
)

// startCopier starts the goroutine that brings the replies.
func (r *relay) startCopier(ctx context.Context) {
	w := r.wire
	stop := context.AfterFunc(ctx, func() { _ = w.SetWriteDeadline(longAgo) })
	r.copying.Go(func() {
		defer stop()
		r.copyReplies(w)
	})
}

// pause ends the reply copier while the client is parked, and reports whether that succeeded. It
// does not wait for the client to read a reply: the session must continue to read from it.
//
// After it the copier has returned. Otherwise the end of the session's present context, when the
// client is parked, could still set the write deadline that the copier is about to withdraw, and
// nothing would be sent to the upstream any more.
func (r *relay) pause() bool {
	done, paused := r.pauseCopier()
	if paused {
		r.copying.Wait()
	}
	return done
}

// pauseCopier implements pause. paused is set if there is a copier, which returns now.
func (r *relay) pauseCopier() (done, paused bool) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	switch {
	case r.line.writing:
		r.activity.Happened() // so that parking is tried again
		return false, false
	case r.wire == nil || r.gone:
		return true, false
	case !r.wire.CanPark():
		return false, false
	}
	r.pausing = true
	_ = r.wire.SetReadDeadline(longAgo)
	r.line.waiting++
	for r.pausing && !r.gone {
		r.line.changed.Wait()
	}
	r.line.waiting--
	r.pausing = false
	return r.paused, r.paused
}

// cancelPause makes a pause fail because a reply has arrived. It is called with mu held.
func (r *relay) cancelPause() {
	if r.pausing {
		r.pausing = false
		r.activity.Happened() // so that parking is tried again
		r.line.signal()
	}
}

// pauseNow pauses the reply copier, which no longer reads; false: the pause was canceled.
func (r *relay) pauseNow() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	_ = r.wire.SetReadDeadline(time.Time{})
	if !r.pausing {
		return false
	}
	r.loan.Release()
	r.wire.Forget()
	r.pausing, r.paused = false, true
	r.line.signal()
	return true
}

// resume restarts a paused reply copier.
func (r *relay) resume(ctx context.Context) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.paused {
		r.paused = false
		r.wire.Wake()
		r.startCopier(ctx)
	}
}
