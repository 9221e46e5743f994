package messages

import (
	"cmp"
	"errors"
	"slices"
)

// Bounds on what is remembered.
const (
	// maxSources is of how many proxies.
	maxSources = 1000
	// maxGaps is how many runs of missing numbers of one of them.
	maxGaps = 4096
	// maxHeld is how many bytes wait for what came before them.
	maxHeld = 16 << 20
)

// errTooMuch is for what would be over a bound: no proxy is like that.
var errTooMuch = errors.New("more messages are missing than can be remembered")

// order has each message come once, and those of a client in their order, whatever masters bring
// them in whatever order. It does no I/O.
//
// A flush is a look at all masters that are listened to: when it is over, all has come that was
// published before it began. Flushes are numbered from 1 on, and one is under way at a time.
type order struct {
	sources map[string]*source
	held    int // bytes that wait
	turns   uint64
}

// source is what is known of a proxy's messages.
type source struct {
	// highest is the highest number that came, missing are those below it that did not.
	highest uint64
	missing []gap
	// decided is the highest Decided that came; settling is what that was when the flush began that
	// is under way.
	decided, settling uint64
	// waiting are messages that came and are not delivered, by their numbers. They are missing,
	// too.
	waiting []waiting
	turn    uint64 // of the last use
}

// gap is the numbers from first to last.
type gap struct{ first, last uint64 }

// waiting is a message that waits for the one before it, but not longer than until a flush is over.
type waiting struct {
	Message
	flush uint64
}

// take takes a message that some master brought, and gives what is to be delivered now. A message
// that must wait for another one does so until flush number flush is over, if that does not come;
// then waits is set. After an error nothing has changed.
func (o *order) take(m Message, flush uint64) (ready []Message, waits bool, err error) {
	s := o.source(m.Source)
	at, isWaiting := s.find(m.Number)
	switch {
	case isWaiting || !s.isMissing(m.Number):
		return nil, false, nil
	case !s.isOpen(m.After):
		if len(s.missing) >= maxGaps && s.addsGap(m.Number) {
			return nil, false, errTooMuch
		}
		s.decided = max(s.decided, m.Decided)
		s.came(m.Number)
		return append([]Message{m}, o.release(s, 0)...), false, nil
	}
	if o.held+m.size() > maxHeld {
		return nil, false, errTooMuch
	}
	o.held += m.size()
	s.waiting = slices.Insert(s.waiting, at, waiting{m, flush})
	return nil, true, nil
}

// begins is told which messages of a source may still come: up to the number last those that are
// open, in their order.
func (o *order) begins(name string, last uint64, open []uint64) {
	s := o.source(name)
	s.highest = last
	for _, number := range open {
		s.missing = append(s.missing, gap{number, number})
	}
}

// size is what a message that waits counts.
func (m *Message) size() int { return headSize + len(m.Channel) + len(m.Payload) }

// begin notes that a flush begins.
func (o *order) begin() {
	for _, s := range o.sources {
		s.settling = s.decided
	}
}

// flushed notes that flush number f is over, and returns what is to be delivered now: what waited
// for messages that did not come. They were not agreed to by a majority. What was decided before
// the flush and has not come is not waited for any more.
func (o *order) flushed(f uint64) (ready []Message) {
	for _, s := range o.sources {
		ready = append(ready, o.release(s, f)...)
		s.settle()
	}
	return ready
}

// release takes out what waits no longer, when flush number f is over. What waited for one that did
// not come goes after all that wait with lower numbers: the client may have sent one of these
// before that one.
func (o *order) release(s *source, f uint64) (ready []Message) {
	for i := 0; i < len(s.waiting); {
		w := s.waiting[i]
		if (w.flush > f || i > 0) && s.isOpen(w.After) {
			i++
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		o.held -= w.size()
		s.decided = max(s.decided, w.Decided)
		s.came(w.Number)
		s.came(w.After) // should it come later still, it would be out of order
		ready = append(ready, w.Message)
	}
	return ready
}

// source is that of a name. A new one may push out the one that was used last before all others.
func (o *order) source(name string) *source {
	s := o.sources[name]
	if s == nil {
		if len(o.sources) >= maxSources {
			o.forgetOldest()
		}
		if o.sources == nil {
			o.sources = map[string]*source{}
		}
		s = &source{}
		o.sources[name] = s
	}
	o.turns++
	s.turn = o.turns
	return s
}

func (o *order) forgetOldest() {
	oldest := ""
	for name, s := range o.sources {
		if oldest == "" || s.turn < o.sources[oldest].turn {
			oldest = name
		}
	}
	for _, w := range o.sources[oldest].waiting {
		o.held -= w.size()
	}
	delete(o.sources, oldest)
}

// find is where a message waits, or would.
func (s *source) find(number uint64) (at int, is bool) {
	return slices.BinarySearchFunc(s.waiting, number, func(w waiting, n uint64) int { return cmp.Compare(w.Number, n) })
}

// gapOf is the place of the gap that holds a number, or where it would be.
func (s *source) gapOf(number uint64) (at int, is bool) {
	at, _ = slices.BinarySearchFunc(s.missing, number, func(g gap, n uint64) int { return cmp.Compare(g.last, n) })
	return at, at < len(s.missing) && s.missing[at].first <= number
}

// isMissing reports whether a message was neither delivered nor given up.
func (s *source) isMissing(number uint64) bool {
	_, is := s.gapOf(number)
	return is || number > s.highest
}

// addsGap reports whether there is one gap more when a message that is missing has come.
func (s *source) addsGap(number uint64) bool {
	if at, is := s.gapOf(number); is {
		return s.missing[at].first < number && number < s.missing[at].last
	}
	return number > s.highest+1
}

// isOpen reports whether what comes after a message has to wait for it.
func (s *source) isOpen(number uint64) bool {
	_, waits := s.find(number)
	return number > 0 && (waits || s.isMissing(number))
}

// came notes that a message is delivered, or given up.
func (s *source) came(number uint64) {
	if number > s.highest {
		if number > s.highest+1 {
			s.missing = append(s.missing, gap{s.highest + 1, number - 1})
		}
		s.highest = number
		return
	}
	at, is := s.gapOf(number)
	if !is {
		return
	}
	g := s.missing[at]
	var left []gap
	if g.first < number {
		left = append(left, gap{g.first, number - 1})
	}
	if number < g.last {
		left = append(left, gap{number + 1, g.last})
	}
	s.missing = slices.Replace(s.missing, at, at+1, left...)
}

// settle gives up what was decided before the flush began, and did not come.
func (s *source) settle() {
	given := 0
	for given < len(s.missing) && s.missing[given].last <= s.settling {
		given++
	}
	s.missing = slices.Delete(s.missing, 0, given)
	if len(s.missing) > 0 && s.missing[0].first <= s.settling {
		s.missing[0].first = s.settling + 1
	}
	s.highest = max(s.highest, s.settling)
}
