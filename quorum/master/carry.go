package master

import (
	"errors"
	"runtime"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/register"
)

// Link is a connection that carries batches of one database, one after the other.
type Link interface {
	// Send sends a batch, and returns whether it may have left. The answers, and what goes
	// wrong from then on, are Receive's. It does not wait for the master.
	Send(f *Flight) bool
	// Receive waits until all answers to a batch are here, of one that was sent or will be,
	// and returns it. The error is why the link broke; what was answered before holds. The
	// batch is nil where none was under way then.
	Receive() (*Flight, error)
	// Close ends it.
	Close()
}

// maxInline is how long a batch may be, in bytes, that is sent by the caller that pushed it: so
// much goes into the buffer of a connection on which everything was answered.
const maxInline = 16 << 10

// launch sends what waits; the caller that claimed the lane calls it. It sends at once if there is
// a link, and nothing must be waited for, else in a goroutine.
func (l *lane) launch() {
	over, more := l.take()
	if !more {
		return
	}
	if over == nil || l.flight.isLarge() || l.master.guard.NeedsEnrolment(l.db) {
		l.master.tasks.Go(func() { l.fly(over) })
		return
	}
	if !l.master.send(over, &l.flight) {
		l.master.tasks.Go(func() { l.fly(nil) })
	}
}

// fly sends the flight over a link, or, if there is none or it has broken meanwhile, over a
// new one, which it then carries batches over until that breaks.
func (l *lane) fly(over Link) {
	if over != nil && l.master.send(over, &l.flight) {
		return
	}
	for {
		k, err := l.master.dial(l.db)
		if err == nil {
			l.hold(k)
			if l.master.send(k, &l.flight) {
				l.carry(k)
				return
			}
			k.Close()
			l.letGo(k)
			err = errLinkBroken
		}
		l.giveUp(err)
		if _, more := l.take(); !more {
			return
		}
	}
}

// errLinkBroken is the cause where a link ended before it was used.
var errLinkBroken = errors.New("the connection was closed at once")

// giveUp answers the flight, of which nothing was sent.
func (l *lane) giveUp(err error) {
	l.flight.fillIn(register.Failed, err)
	if refusal := resp.Error(""); !errors.As(err, &refusal) {
		l.master.fail(err)
	}
	l.deliver()
}

// carry receives answers, hands them out, and sends what has collected, as long as the link
// lasts. Where it breaks under a batch that goes on with the next one.
func (l *lane) carry(k Link) {
	for {
		f, err := k.Receive()
		if err != nil {
			k.Close()
			l.letGo(k)
		}
		if f == nil {
			return
		}
		l.land(err)
		runtime.Gosched() // other goroutines may have more for the next batch
		over, more := l.take()
		switch {
		case !more && err == nil:
			continue
		case !more:
			return
		case over == k && l.master.send(k, f):
			continue
		case over == k:
			k.Close()
			l.letGo(k)
		}
		l.fly(nil)
		return
	}
}

// land is for a flight whose answers are here, or as many as will ever be.
func (l *lane) land(err error) {
	m, f := l.master, &l.flight
	if err == nil && m.roundTrips != nil {
		m.roundTrips(time.Since(f.sent))
	}
	if err != nil {
		f.fillIn(register.Unknown, err)
	}
	if mistake := new(contained.PanicError); errors.As(err, &mistake) {
		m.log.Error("a batch failed", "master", m.name, "cause", mistake)
	}
	if cause := m.guard.Weigh(&f.check); cause != nil {
		f.discount(cause)
	}
	if err != nil {
		m.fail(err)
	}
	l.deliver()
}

// deliver finishes the ops, but for those which the master did not know how to do: they
// were not done, and go again in another form in front of all that came later.
func (l *lane) deliver() {
	l.learn()
	l.leaveTurn()
	f := &l.flight
	var again []*op
	for i, o := range f.ops {
		if !o.whole && l.master.transport.Misses(f.replies[i].Err) {
			o.whole = true
			again = append(again, o)
		} else {
			l.master.finish(o, &f.replies[i])
		}
	}
	f.unload()
	if len(again) > 0 {
		if err := l.again(again); err != nil {
			l.master.refuse(again, err)
		}
	}
}

// isLarge reports whether a batch may not fit into the buffer of a connection.
func (f *Flight) isLarge() bool {
	size := 0
	for _, o := range f.ops {
		if size += len(o.words); o.whole {
			return true
		}
	}
	return size > maxInline
}
