package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"redlock-proxy/proxy/wire"
)

// copyReplies brings replies to the client until either connection ends, or until
// it is paused.
func (r *relay) copyReplies(w *wire.Conn) {
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
	r.loan.Rest()
	_ = w.Close()
	r.end(err)
}

// deliver learns from what the upstream sent, and writes to the client what is
// for it.
func (r *relay) deliver(p []byte) error {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	p, err := r.prepare(p)
	if len(p) == 0 || err != nil {
		return err
	}
	r.brought++
	n, err := r.line.write(p)
	r.shared.traffic.toClients.Add(int64(n))
	return err
}

// errBroken is the end of a connection in which something went wrong that is a mistake in
// the program.
var errBroken = errors.New("internal error")

// prepare learns from what the upstream sent, and returns what is to be written to the client, in
// the courier's turn. A panic costs this client its connection, and no other. It is called with mu
// held.
func (r *relay) prepare(p []byte) (kept []byte, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			r.shared.opts.Logger.Error("a relay failed", "client", r.client.origin(), "panic", problem, "stack", string(debug.Stack()))
			kept, err = nil, errBroken
		}
	}()
	r.line.turn()
	r.stay()
	r.carries.heard = true
	p = r.filter(p)
	if r.carries.vouched != 0 {
		r.line.signal()
	}
	if len(p) > 0 {
		r.boundIf(r.tracker.State.Unasked())
	} else {
		r.line.signal()
	}
	return p, nil
}

// filter tracks replies, takes out those that the proxy asked for itself, and turns those that lead
// elsewhere. It is called with mu held.
func (r *relay) filter(p []byte) []byte {
	var kept []byte // of p[:at], once something was taken out
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
		case part.Judged:
			if !taken {
				kept, taken = append(kept, p[:at]...), true
			}
			kept = append(kept, part.Instead...)
			if part.Turned != "" {
				r.led(part.Turned)
			}
		case taken:
			kept = append(kept, piece...)
		}
		at += part.Size
		if err != nil {
			r.spoilt = err
			r.line.signal()
			return kept
		}
		if part.Whole {
			r.answers, r.asked = append(r.answers, r.asked), nil
		}
	}
	if !taken {
		return p
	}
	return append(kept, p[at:]...)
}

// maxAnswer bounds an answer to a question of the proxy's own: COMMAND DOCS of a Redis with
// all its modules has about 1 MB.
const maxAnswer = 16 << 20

// keepAnswer keeps a part of such an answer. One that is too large is given up, and with it
// the connection. It is called with mu held.
func (r *relay) keepAnswer(part []byte) {
	if r.spoilt != nil {
		return
	}
	if len(r.asked)+len(part) <= maxAnswer {
		r.asked = append(r.asked, part...)
		return
	}
	r.spoilt = errTooMuch
	r.asked = nil
	r.line.signal()
}

// end deals with the client of a connection that has ended: what was asked and
// not answered is answered with an error naming the upstream, and the client may
// go on, unless its connection has state that is lost, or the state of its own
// stream is not known.
func (r *relay) end(cause error) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.line.turn()
	if r.left && cause != errClientLeft {
		cause = r.up.WhyLeft()
	}
	state, awaited := &r.tracker.State, &r.tracker.Awaited
	owed := awaited.Owed()
	if r.givenUp && r.tracker.InsideOwn() {
		r.tracker.Begin() // what was broken off was not for the client
	}
	honest := !r.tracker.Inside() && !state.Multi && !state.Unasked() && !state.Stream && !state.Quitting && !awaited.Closes()
	apologises := honest && owed > 0 && !r.parting && cause != errClientLeft
	r.over = r.over || !honest || owed == 0 && !r.givenUp || r.stateful || r.parting || cause == errClientLeft
	r.tracker.Lost(r.up.DB())
	r.gone, r.givenUp = true, false
	r.line.changed.Broadcast()
	if r.over {
		r.client.end()
	}
	if apologises {
		r.apologise(owed, cause)
	}
}

// apologise answers n commands that the upstream never will, in pieces: nobody bounds how many
// these are. All else that is to be known of the lost connection is known by then: mu is let go
// while the client does not take a piece, and after each. It is called with mu held.
func (r *relay) apologise(n int, cause error) {
	apology := r.apology(cause)
	some := max(1, maxPending/len(apology))
	piece := []byte(strings.Repeat(apology, min(n, some)))
	for err := error(nil); n > 0 && err == nil; n -= some {
		r.boundIf(r.over) // else it is one that asked for it
		var taken int
		taken, err = r.line.writeReplies(0, piece[:min(n, some)*len(apology)])
		r.shared.traffic.toClients.Add(int64(taken))
		r.brought++
		r.line.yield()
	}
	r.line.signal()
}

// apology is the answer to a command that the upstream has not answered.
func (r *relay) apology(cause error) string {
	return "-" + r.up.Failure(cause).Reply() + " before it answered: the command may or may not have been done\r\n"
}

var (
	errNoAnswer = errors.New("no answer in time to a question of the proxy's")
	errTooMuch  = fmt.Errorf("its answer to a question of the proxy's is longer than %d bytes", maxAnswer)
)

// bringReplies starts the goroutine that brings the replies.
func (r *relay) bringReplies(ctx context.Context) {
	w := r.wire
	stop := context.AfterFunc(ctx, func() { _ = w.SetWriteDeadline(longAgo) })
	r.copying.Go(func() {
		defer stop()
		r.copyReplies(w)
	})
}

// pause has the courier end for the time that the client is parked, and
// reports whether nothing stands against that. It does not wait for the client to
// take a reply: what it sends meanwhile must be read.
func (r *relay) pause() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	switch {
	case r.line.writing:
		r.activity.Happened() // try again
		return false
	case r.wire == nil || r.gone:
		return true
	case !r.wire.CanPark():
		return false
	}
	r.pausing = true
	_ = r.wire.SetReadDeadline(longAgo)
	r.line.waiting++
	for r.pausing && !r.gone {
		r.line.changed.Wait()
	}
	r.line.waiting--
	r.pausing = false
	return r.paused
}

// stay has a pause fail: a reply has come. It is called with mu held.
func (r *relay) stay() {
	if r.pausing {
		r.pausing = false
		r.activity.Happened() // try again
		r.line.signal()
	}
}

// pauseNow is the courier's part, once it reads no more: it ends, unless the
// pause has failed.
func (r *relay) pauseNow() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	_ = r.wire.SetReadDeadline(time.Time{})
	if !r.pausing {
		return false
	}
	r.loan.Rest()
	r.wire.Forget()
	r.pausing, r.paused = false, true
	r.line.signal()
	return true
}

// resume starts it again.
func (r *relay) resume(ctx context.Context) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.paused {
		r.paused = false
		r.wire.Wake()
		r.bringReplies(ctx)
	}
}
