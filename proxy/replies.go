package proxy

import (
	"context"
	"errors"
	"io"
	"os"
)

// copyReplies brings replies to the client until either connection ends, or until
// it is paused.
func (r *relay) copyReplies(w *wire) {
	var undelivered error
	deliver := func(n int) bool {
		undelivered = r.deliver(r.loan.buf[:n])
		return undelivered == nil
	}
	err := w.pump(deliver)
	for errors.Is(err, os.ErrDeadlineExceeded) {
		if r.pauseNow() {
			return
		}
		err = w.pump(deliver)
	}
	if undelivered != nil {
		err = errClientLeft
	}
	r.loan.rest()
	_ = w.conn.Close()
	r.end(err)
}

// loan is a buffer for as long as there is something to read.
type loan struct{ buf []byte }

func (l *loan) room() []byte {
	if l.buf == nil {
		l.buf = borrow()
	}
	return l.buf
}

func (l *loan) rest() {
	giveBack(l.buf)
	l.buf = nil
}

// deliver learns from what the upstream sent, and writes to the client what is
// for it.
func (r *relay) deliver(p []byte) error {
	r.mu.Lock()
	r.stay()
	p = r.sift(p)
	if r.writing = len(p) > 0; r.writing {
		r.bound(r.learned.unasked())
	} else {
		r.signal()
	}
	r.mu.Unlock()
	if len(p) == 0 {
		return nil
	}
	_, err := r.client().Write(p)
	r.mu.Lock()
	r.writing = false
	r.brought++
	r.signal()
	r.mu.Unlock()
	return err
}

// sift scans replies and takes out those that the proxy asked for itself. It is
// called with mu held.
func (r *relay) sift(p []byte) []byte {
	var kept []byte // of p[:at], once something was taken out
	taken := false
	at := 0
	for at < len(p) && !r.streaming(p[at]) {
		if n := r.skim(p[at:]); n > 0 {
			if taken {
				kept = append(kept, p[at:at+n]...)
			}
			at += n
			continue
		}
		mine := r.isMine(p[at])
		if !r.replies.inside {
			r.replies.keepHead = r.matters(p[at])
		}
		n, ended, err := r.replies.scan(p[at:])
		part := p[at : at+n]
		switch {
		case mine:
			if !taken {
				kept, taken = append(kept, p[:at]...), true
			}
			r.asked = append(r.asked, part...)
		case taken:
			kept = append(kept, part...)
		}
		at += n
		if err != nil {
			r.learned.stream = true
		}
		if ended && r.learned.reply(&r.awaited, &r.replies) {
			r.answer, r.asked = r.asked, nil
		}
	}
	if !taken {
		return p
	}
	return append(kept, p[at:]...)
}

// matters reports whether anything can be learned from the reply that begins with
// the next byte.
func (r *relay) matters(next byte) bool {
	first := r.awaited.first()
	return first == nil || first.kind != slotPlain || next == '>' || r.learned.unasked()
}

// streaming reports whether what begins with the next byte is not a reply: that of
// a SYNC, unless it is refused, or of an EXEC within which there are answers that are
// no elements of it.
func (r *relay) streaming(next byte) bool {
	if first := r.awaited.first(); first != nil && !r.replies.inside && next != '-' {
		odd := first.kind == slotExec && r.learned.queuedOdd && next == '*'
		r.learned.stream = r.learned.stream || first.kind == slotStream || odd
	}
	return r.learned.stream
}

// isMine reports whether the reply in which, or before which, the next byte stands
// is one that the proxy asked for itself.
func (r *relay) isMine(next byte) bool {
	first := r.awaited.first()
	if first == nil || first.kind != slotCapture {
		return false
	}
	if r.replies.inside {
		return len(r.asked) > 0
	}
	return next != '>'
}

// end deals with the client of a connection that has ended: what was asked and
// not answered is answered with an error naming the upstream, and the client may
// go on, unless its connection has state that is lost, or the state of its own
// stream is not known.
func (r *relay) end(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.learned
	owed := r.awaited.owed()
	honest := !r.replies.inside && !l.multi && !l.unasked() && !l.stream && !l.quitting && !r.awaited.closes()
	if honest && owed > 0 && !r.parting && cause != errClientLeft {
		r.apologise(owed, cause)
	}
	r.over = !honest || owed == 0 || r.stateful || r.parting || cause == errClientLeft
	r.awaited, r.learned = awaited{}, newLearned()
	r.learned.db = r.up.options.DB
	r.gone = true
	r.changed.Broadcast()
	if r.over {
		r.session.end()
	}
}

// apologise answers n commands that the upstream never will.
func (r *relay) apologise(n int, cause error) {
	failed := &upstreamError{r.up.name, plainCause(cause)}
	r.bound(true)
	reply := "-" + failed.reply() + " before it answered: the command may or may not have been done\r\n"
	for range n {
		if _, err := io.WriteString(r.client(), reply); err != nil {
			return
		}
	}
}

// request sends a command for the proxy itself. Nothing else may be awaited.
func (r *relay) request(command []byte) error {
	if !r.expect(0, slot{kind: slotCapture, n: 1}) {
		return &upstreamError{r.up.name, errUpstreamGone}
	}
	r.send(command)
	return nil
}

// response waits for the whole reply to a request.
func (r *relay) response(ctx context.Context) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.wait(ctx, func() bool { return r.answer != nil || r.gone }); err != nil {
		return nil, err
	}
	answer := r.answer
	r.answer = nil
	if answer == nil {
		return nil, &upstreamError{r.up.name, errUpstreamGone}
	}
	return answer, nil
}
