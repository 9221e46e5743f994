package sharing

import (
	"errors"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/detour"
)

var (
	errUnasked = errors.New("it sent something that nobody asked for")
	errEndless = errors.New("others wait behind a reply of more than 1 GB")
	errNoReply = errors.New("what it sent is no reply")
)

// order is who is owed how many replies on a connection, in the order in which they come, and how far the stream has come.
// It has no lock, and does no I/O.
type order[T comparable] struct {
	debts   []debt[T]
	head    int // of debts; those before it are paid
	replies resp.ReplyScanner
	size    int // bytes of the reply that has begun and not ended
	// pushes: the protocol has messages that are no replies; pushing: one has begun and not ended.
	pushes, pushing bool
	// detours finds what leads elsewhere among the replies.
	detours detour.Filter
}

type debt[T comparable] struct {
	to T
	n  int
}

// piece is what one of them gets next.
type piece[T comparable] struct {
	to T
	// size is how many bytes, ended how many replies end with them.
	size, ended int
	// inside is how long the reply is that goes on after them, as far as it has come; 0: they end with a reply.
	inside int
	// push: it is nobody's, but of a message that is no reply.
	push bool
	// judged: it is brought instead in the place of these bytes. turned is what was found to lead elsewhere, with its end.
	judged  bool
	instead []byte
	turned  string
}

// owe has n more replies come, at least one.
func (o *order[T]) owe(to T, n int) {
	if last := len(o.debts) - 1; last >= o.head && o.debts[last].to == to {
		o.debts[last].n += n
		return
	}
	if o.head > 0 && len(o.debts) == cap(o.debts) {
		o.debts = o.debts[:copy(o.debts, o.debts[o.head:])]
		o.head = 0
	}
	o.debts = append(o.debts, debt[T]{to, n})
}

// next takes the next piece of what has come, up to the last reply that the first of them is owed, or all there is. The
// error says that the stream cannot be followed any more; the piece is then what still could be.
func (o *order[T]) next(p []byte) (next piece[T], err error) {
	if o.isPush(p) {
		return o.push(p)
	}
	if o.head == len(o.debts) {
		return next, errUnasked
	}
	d := &o.debts[o.head]
	next.to = d.to
	for next.size < len(p) && d.n > 0 && !o.isPush(p[next.size:]) && !next.judged {
		judged := o.isJudged(p[next.size])
		if judged && next.size > 0 {
			break // it is a piece by itself
		}
		n, ended, err := o.reply(p[next.size:])
		if judged && err == nil {
			next.judged = true
			next.instead, next.turned = o.detours.Take(p[:n], ended)
		}
		if err != nil {
			next.inside = o.size
			return next, errNoReply
		}
		if next.size += n; ended {
			next.ended++
			d.n--
		}
	}
	if next.inside = o.size; d.n == 0 {
		var none T
		d.to = none
		if o.head++; o.head == len(o.debts) {
			o.debts, o.head = o.debts[:0], 0
		}
	}
	return next, nil
}

// isPush reports whether p begins with a message that is no reply, or goes on with one: who has the right to it can have a client be
// sent what he tracks (CLIENT TRACKING … REDIRECT), be it that nobody there asked for it.
func (o *order[T]) isPush(p []byte) bool { return o.pushing || o.pushes && o.size == 0 && p[0] == '>' }

// isJudged reports whether a reply that begins so, or goes on, is one that may lead elsewhere.
func (o *order[T]) isJudged(next byte) bool {
	if o.size > 0 {
		return o.detours.Looks(byte(o.replies.Kind()))
	}
	return o.detours.Looks(next)
}

// push takes what has come of one.
func (o *order[T]) push(p []byte) (next piece[T], err error) {
	n, ended, err := o.replies.Scan(p)
	if o.pushing = !ended; err != nil {
		return next, errNoReply
	}
	return piece[T]{size: n, push: true}, nil
}

// reply takes what has come of one reply.
func (o *order[T]) reply(p []byte) (n int, ended bool, err error) {
	if o.size == 0 {
		if n := resp.SimpleReply(p); n > 0 {
			return n, true, nil
		}
		if p[0] == '>' {
			return 0, false, errNoReply
		}
	}
	n, ended, err = o.replies.Scan(p)
	if o.size += n; ended {
		o.size = 0
	}
	return n, ended, err
}

// empty reports whether nothing is owed.
func (o *order[T]) empty() bool { return o.head == len(o.debts) }

// alone reports whether nobody else is owed anything.
func (o *order[T]) alone(who T) bool {
	for _, d := range o.debts[o.head:] {
		if d.to != who {
			return false
		}
	}
	return true
}

// left gives what is owed, each of them once, and forgets it. The first one may have got the beginning of a reply.
func (o *order[T]) left() (all []debt[T], inside bool) {
	sums := map[T]int{}
	for _, d := range o.debts[o.head:] {
		if at, known := sums[d.to]; known {
			all[at].n += d.n
			continue
		}
		sums[d.to] = len(all)
		all = append(all, d)
	}
	o.debts, o.head = nil, 0
	return all, o.size > 0
}
