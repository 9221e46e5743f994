package master

import (
	"errors"
	"runtime"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/register"
)

// Link transports batches of one database over a connection, one after the other.
type Link interface {
	// Send sends a batch without waiting for the master, and reports whether the batch may have
	// been sent. Receive returns the replies, and any later error.
	Send(f *Batch) bool
	// Receive waits for all replies to a batch, and returns the batch. The batch may be sent before
	// or after the call. The error is the reason why the link broke; replies from before the error
	// are valid. The batch is nil if no batch was in flight.
	Receive() (*Batch, error)
	// Close closes the connection.
	Close()
}

// maxInline is the maximum size of a batch, in bytes, that the caller of push sends itself. Such a
// batch fits into the buffer of a connection without unanswered batches.
const maxInline = 16 << 10

// launch sends the queued ops. The caller that claimed the lane calls it. If there is a link and
// sending cannot block, launch sends at once, otherwise in a goroutine.
func (l *lane) launch() {
	link, more := l.take()
	if !more {
		return
	}
	if link == nil || l.inFlight.isLarge() || l.master.guard.NeedsEnrolment(l.db) {
		l.master.tasks.Go(func() { l.sendOrDial(link) })
		return
	}
	if !l.master.send(link, &l.inFlight) {
		l.master.tasks.Go(func() { l.sendOrDial(nil) })
	}
}

// sendOrDial sends the batch in flight over a link. If there is no link, or it has broken,
// sendOrDial opens a new link, and transports batches over it until it breaks.
func (l *lane) sendOrDial(link Link) {
	if link != nil && l.master.send(link, &l.inFlight) {
		return
	}
	for {
		k, err := l.master.dial(l.db)
		if err == nil {
			l.setLink(k)
			if l.master.send(k, &l.inFlight) {
				l.receiveLoop(k)
				return
			}
			k.Close()
			l.clearLink(k)
			err = errLinkBroken
		}
		l.failBatch(err)
		if _, more := l.take(); !more {
			return
		}
	}
}

// errLinkBroken is the cause if a link broke before it was used.
var errLinkBroken = errors.New("the connection was closed at once")

// failBatch fails all ops of a batch that was not sent.
func (l *lane) failBatch(err error) {
	l.inFlight.fillMissingReplies(register.Failed, err)
	if refusal := resp.Error(""); !errors.As(err, &refusal) {
		l.master.takeDown(err)
	}
	l.deliver()
}

// receiveLoop receives and delivers replies, and sends the ops queued meanwhile, until the link
// breaks. If it breaks during a batch, receiveLoop continues with the next batch over a new link.
func (l *lane) receiveLoop(k Link) {
	for {
		f, err := k.Receive()
		if err != nil {
			k.Close()
			l.clearLink(k)
		}
		if f == nil {
			return
		}
		l.complete(err)
		runtime.Gosched() // lets other goroutines add ops to the next batch
		link, more := l.take()
		switch {
		case !more && err == nil:
			continue
		case !more:
			return
		case link == k && l.master.send(k, f):
			continue
		case link == k:
			k.Close()
			l.clearLink(k)
		}
		l.sendOrDial(nil)
		return
	}
}

// complete processes the batch in flight after the last reply or an error.
func (l *lane) complete(err error) {
	m, f := l.master, &l.inFlight
	if err == nil && m.observeRoundTrip != nil {
		m.observeRoundTrip(time.Since(f.sentAt))
	}
	if err != nil {
		f.fillMissingReplies(register.Unknown, err)
	}
	if panicErr := new(contained.PanicError); errors.As(err, &panicErr) {
		m.log.Error("internal error while processing the replies of a master; report this line", "master", m.name, "cause", panicErr)
	}
	if cause := m.guard.Evaluate(&f.check); cause != nil {
		f.uncount(cause)
	}
	if err != nil {
		m.takeDown(err)
	}
	l.deliver()
}

// deliver delivers the replies to the ops. If the master did not execute an op because it lacks a
// script or a syntax, deliver sends the op again in another form, ahead of all later ops.
func (l *lane) deliver() {
	l.learnSizes()
	l.releaseTurn()
	f := &l.inFlight
	var retryOps []*op
	for i, o := range f.ops {
		if !o.fullScript && l.master.transport.IsUnsupported(f.replies[i].Err) {
			o.fullScript = true
			retryOps = append(retryOps, o)
		} else {
			l.master.finish(o, &f.replies[i])
		}
	}
	f.unload()
	if len(retryOps) > 0 {
		if err := l.requeue(retryOps); err != nil {
			l.master.refuse(retryOps, err)
		}
	}
}

// isLarge reports whether a batch may exceed the buffer of a connection.
func (f *Batch) isLarge() bool {
	size := 0
	for _, o := range f.ops {
		if size += len(o.words); o.fullScript {
			return true
		}
	}
	return size > maxInline
}
