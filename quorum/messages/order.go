package messages

import (
	"cmp"
	"errors"
	"slices"
)

// Limits of the memory for messages.
const (
	// maxSources limits the number of proxies.
	maxSources = 1000
	// maxGaps limits the gaps in the numbers of one proxy.
	maxGaps = 4096
	// maxWaitingBytes limits the size of the waiting messages, in bytes.
	maxWaitingBytes = 16 << 20
)

// errOverLimit means that a message would exceed a limit. Proxies rarely cause this error: it
// protects against other clients of the masters.
var errOverLimit = errors.New("too many messages are missing or waiting")

// order releases each message once, and the messages of each client in order, regardless of the
// order in which the masters deliver them. It does no I/O.
//
// A flush is a PING to all connected masters. When all have answered, all messages published before
// the flush have arrived. Flushes are numbered from 1, and at most one is in progress.
type order struct {
	sources      map[string]*source
	waitingBytes int // size of the waiting messages
	useCounter   uint64
}

// source holds the state of one proxy's messages.
type source struct {
	// highestNumber is the highest number that has arrived. gaps holds the lower numbers that have
	// not arrived.
	highestNumber uint64
	gaps          []gap
	// lastDecided is the highest LastDecided of the arrived messages. lastDecidedAtFlush is its
	// value at the start of the current flush.
	lastDecided, lastDecidedAtFlush uint64
	// waitingMessages holds the messages that have arrived and wait for earlier messages, in the
	// order of their numbers. They also count as missing.
	waitingMessages []waitingMessage
	lastUse         uint64 // value of useCounter at the last use
}

// gap is the range of numbers from first to last.
type gap struct{ first, last uint64 }

// waitingMessage holds a message that waits for the previous message of its client, at most until
// flush number flush has ended.
type waitingMessage struct {
	Message
	flush uint64
}

// add processes a message that a master delivered, and returns the messages to deliver now. If the
// message must wait for an earlier message, mustWait is set. It waits at most until flush number
// flush has ended. If add returns an error, it changes nothing.
func (o *order) add(m Message, flush uint64) (readyMessages []Message, mustWait bool, err error) {
	s := o.source(m.Source)
	at, isWaiting := s.find(m.Number)
	switch {
	case isWaiting || !s.isMissing(m.Number):
		return nil, false, nil
	case !s.blocks(m.PreviousNumber):
		if len(s.gaps) >= maxGaps && s.addsGap(m.Number) {
			return nil, false, errOverLimit
		}
		s.lastDecided = max(s.lastDecided, m.LastDecided)
		s.markDone(m.Number)
		return append([]Message{m}, o.release(s, 0)...), false, nil
	}
	if o.waitingBytes+m.size() > maxWaitingBytes {
		return nil, false, errOverLimit
	}
	o.waitingBytes += m.size()
	s.waitingMessages = slices.Insert(s.waitingMessages, at, waitingMessage{m, flush})
	return nil, true, nil
}

// addSource sets which messages of a source may still arrive: numbers above lastNumber, and the
// sorted undecided numbers.
func (o *order) addSource(name string, lastNumber uint64, undecidedNumbers []uint64) {
	s := o.source(name)
	s.highestNumber = lastNumber
	for _, number := range undecidedNumbers {
		s.gaps = append(s.gaps, gap{number, number})
	}
}

// size returns the size of a waiting message for maxWaitingBytes.
func (m *Message) size() int { return headSize + len(m.Channel) + len(m.Payload) }

// beginFlush records the start of a flush.
func (o *order) beginFlush() {
	for _, s := range o.sources {
		s.lastDecidedAtFlush = s.lastDecided
	}
}

// endFlush records the end of flush number f, and returns the messages to deliver now. They waited
// for messages that did not arrive, because no majority accepted those messages. endFlush abandons
// the missing messages that were decided before the flush.
func (o *order) endFlush(f uint64) (readyMessages []Message) {
	for _, s := range o.sources {
		readyMessages = append(readyMessages, o.release(s, f)...)
		s.abandonDecidedGaps()
	}
	return readyMessages
}

// release removes and returns the messages that need not wait after flush number f. A message that
// waited for a message that did not arrive also waits for the messages with lower numbers: the
// client may have sent one of them before the missing message.
func (o *order) release(s *source, f uint64) (readyMessages []Message) {
	for i := 0; i < len(s.waitingMessages); {
		w := s.waitingMessages[i]
		if (w.flush > f || i > 0) && s.blocks(w.PreviousNumber) {
			i++
			continue
		}
		s.waitingMessages = slices.Delete(s.waitingMessages, i, i+1)
		o.waitingBytes -= w.size()
		s.lastDecided = max(s.lastDecided, w.LastDecided)
		s.markDone(w.Number)
		s.markDone(w.PreviousNumber) // a later arrival would be out of order
		readyMessages = append(readyMessages, w.Message)
	}
	return readyMessages
}

// source returns the source with a name. A new source may replace the least recently used source.
func (o *order) source(name string) *source {
	s := o.sources[name]
	if s == nil {
		if len(o.sources) >= maxSources {
			o.removeOldestSource()
		}
		if o.sources == nil {
			o.sources = map[string]*source{}
		}
		s = &source{}
		o.sources[name] = s
	}
	o.useCounter++
	s.lastUse = o.useCounter
	return s
}

func (o *order) removeOldestSource() {
	oldest := ""
	for name, s := range o.sources {
		if oldest == "" || s.lastUse < o.sources[oldest].lastUse {
			oldest = name
		}
	}
	for _, w := range o.sources[oldest].waitingMessages {
		o.waitingBytes -= w.size()
	}
	delete(o.sources, oldest)
}

// find returns the index in waitingMessages of a message that waits, or its insertion index.
func (s *source) find(number uint64) (index int, found bool) {
	return slices.BinarySearchFunc(s.waitingMessages, number, func(w waitingMessage, n uint64) int { return cmp.Compare(w.Number, n) })
}

// gapOf returns the index of the gap that contains a number. If no gap contains it, index is the
// insertion index of a new gap.
func (s *source) gapOf(number uint64) (index int, found bool) {
	index, _ = slices.BinarySearchFunc(s.gaps, number, func(g gap, n uint64) int { return cmp.Compare(g.last, n) })
	return index, index < len(s.gaps) && s.gaps[index].first <= number
}

// isMissing reports whether a message was neither delivered nor abandoned.
func (s *source) isMissing(number uint64) bool {
	_, found := s.gapOf(number)
	return found || number > s.highestNumber
}

// addsGap reports whether the arrival of a missing message adds a gap.
func (s *source) addsGap(number uint64) bool {
	if at, found := s.gapOf(number); found {
		return s.gaps[at].first < number && number < s.gaps[at].last
	}
	return number > s.highestNumber+1
}

// blocks reports whether the next message of the same client has to wait for message number.
func (s *source) blocks(number uint64) bool {
	_, isWaiting := s.find(number)
	return number > 0 && (isWaiting || s.isMissing(number))
}

// markDone records that a message is delivered or abandoned.
func (s *source) markDone(number uint64) {
	if number > s.highestNumber {
		if number > s.highestNumber+1 {
			s.gaps = append(s.gaps, gap{s.highestNumber + 1, number - 1})
		}
		s.highestNumber = number
		return
	}
	at, found := s.gapOf(number)
	if !found {
		return
	}
	g := s.gaps[at]
	var remainingGaps []gap
	if g.first < number {
		remainingGaps = append(remainingGaps, gap{g.first, number - 1})
	}
	if number < g.last {
		remainingGaps = append(remainingGaps, gap{number + 1, g.last})
	}
	s.gaps = slices.Replace(s.gaps, at, at+1, remainingGaps...)
}

// abandonDecidedGaps abandons the missing messages that were decided before the flush began.
func (s *source) abandonDecidedGaps() {
	n := 0
	for n < len(s.gaps) && s.gaps[n].last <= s.lastDecidedAtFlush {
		n++
	}
	s.gaps = slices.Delete(s.gaps, 0, n)
	if len(s.gaps) > 0 && s.gaps[0].first <= s.lastDecidedAtFlush {
		s.gaps[0].first = s.lastDecidedAtFlush + 1
	}
	s.highestNumber = max(s.highestNumber, s.lastDecidedAtFlush)
}
