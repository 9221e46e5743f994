package wake

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/feed"
)

const (
	// heartbeat is how long a watch may be silent before it is asked for a sign of life.
	heartbeat = time.Second
	// headSize is how much of a value tells what kind of cell it is.
	headSize = 512
)

// limits bound what a master says at once.
func limits() resp.Limits {
	return resp.Limits{Line: 16 << 10, Bulk: 2 * longestKey, Elements: 1 << 12, Depth: 4, Total: 4 << 20}
}

// line is a connection of a watch.
type line struct {
	*feed.Line
	watch *watch

	mu sync.Mutex
	// asks are the keys to be looked at.
	asks []look
	// pending are the questions that were sent, in their order.
	pending []question
	// heard is set where the master said something since the last beat.
	heard bool
}

// look is a key to be looked at, after a value was put there, if there is one, which stays for so
// long.
type look struct {
	key, value string
	last       time.Duration
}

// question is a look at a key, or whether the master lives.
type question struct {
	key  string
	ping bool
	// puts is set where a value is put there first, until that is answered; refused where the
	// master did not do it.
	puts, refused bool
	// halfway is set when the first of the two answers of a look is here, and left is that; stale
	// where a change was told between the two.
	halfway, stale bool
	left           int64
}

func newLine(conn net.Conn, w *watch) *line {
	return &line{Line: feed.NewLine(conn, limits()), watch: w}
}

// patience is how long an answer is waited for.
func (l *line) patience() time.Duration { return l.watch.waker.opts.Patience }

// greet has the master tell of changes of what is read here.
func (l *line) greet() error {
	err := feed.Greet(l, l.In, l.patience(), resp.Status, "CLIENT", "TRACKING", "ON")
	if err == nil {
		l.hears()
	}
	return err
}

// ask has a key looked at soon. Only the holder of watch.mu calls it.
func (l *line) ask(one look) {
	l.mu.Lock()
	l.asks = append(l.asks, one)
	l.mu.Unlock()
	l.Prompt()
}

// write sends questions until the connection ends.
func (l *line) write() {
	defer l.End()
	beat := time.Tick(heartbeat)
	for {
		var out []byte
		select {
		case <-l.Ended:
			return
		case <-l.Due:
			out = l.looks()
		case now := <-beat:
			if l.watch.isIdle(now) {
				return
			}
			out = l.ping()
		}
		if len(out) == 0 {
			continue
		}
		_ = l.SetWriteDeadline(time.Now().Add(l.patience()))
		if _, err := l.Write(out); err != nil {
			return
		}
	}
}

// looks encodes the looks that are due.
func (l *line) looks() (out []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.asks {
		if one.value != "" {
			out = resp.AppendWords(out, "SET", one.key, one.value, "PX", strconv.FormatInt(one.last.Milliseconds(), 10))
		}
		out = resp.AppendWords(out, "PTTL", one.key)
		out = resp.AppendWords(out, "GETRANGE", one.key, "0", strconv.Itoa(headSize-1))
		l.await(question{key: one.key, puts: one.value != ""})
	}
	clear(l.asks)
	l.asks = l.asks[:0]
	return out
}

// ping encodes a question for a sign of life, unless there was one.
func (l *line) ping() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := l.heard
	l.heard = false
	if heard || len(l.pending) > 0 {
		return nil
	}
	l.await(question{ping: true})
	return resp.AppendWords(nil, "PING")
}

// await notes a question that is sent now. Only the holder of l.mu calls it.
func (l *line) await(q question) {
	if len(l.pending) == 0 {
		_ = l.SetReadDeadline(time.Now().Add(l.patience()))
	}
	l.pending = append(l.pending, q)
}

// hears has the connection stand for another while.
func (l *line) hears() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = true
	wait := l.patience()
	if len(l.pending) == 0 {
		wait += 3 * heartbeat // a beat skips one that heard something
	}
	_ = l.SetReadDeadline(time.Now().Add(wait))
}

// read takes what the master tells until the connection ends.
func (l *line) read() error {
	for {
		said, kind, err := feed.Next(l.In)
		switch {
		case err != nil:
			return err
		case kind == resp.Push:
			err = l.push(said)
		default:
			err = l.answer(said)
		}
		if err != nil {
			return err
		}
		l.hears()
	}
}

// push takes that keys have changed, or all of them.
func (l *line) push(said any) error {
	parts, _ := said.([]any)
	if len(parts) != 2 || parts[0] != any("invalidate") {
		return feed.ErrUnasked
	}
	if parts[1] == nil {
		l.stale(func(string) bool { return true })
		l.watch.seeAll(sighting{state: changed})
		return nil
	}
	keys, ok := parts[1].([]any)
	if !ok {
		return feed.ErrUnasked
	}
	for _, one := range keys {
		key, ok := one.(string)
		if !ok {
			return feed.ErrUnasked
		}
		l.stale(func(looked string) bool { return looked == key })
		l.watch.see(key, sighting{state: changed})
	}
	return nil
}

// stale notes that a key changed between the two answers of a look at it.
func (l *line) stale(is func(key string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) > 0 && l.pending[0].halfway && is(l.pending[0].key) {
		l.pending[0].stale = true
	}
}

// answer takes an answer to the oldest question.
func (l *line) answer(said any) error {
	q, whole, err := l.next(said)
	if err != nil || !whole || q.ping {
		return err
	}
	s := sighting{state: changed, stale: true}
	if !q.stale {
		if s, err = sightingOf(q.left, said, time.Now()); err != nil {
			return err
		}
	}
	if q.refused {
		s = sighting{state: unknown}
	}
	l.watch.see(q.key, s)
	return nil
}

// next is the question that is answered, and whether that is the whole answer.
func (l *line) next(said any) (q question, whole bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return q, false, feed.ErrUnasked
	}
	now := &l.pending[0]
	if now.puts {
		now.puts, now.refused = false, said != any("OK")
		if _, refusal := said.(resp.Error); now.refused && !refusal {
			return *now, false, failure(said)
		}
		return *now, false, nil
	}
	if !now.ping && !now.halfway {
		now.halfway = true
		now.left, err = number(said)
		return *now, false, err
	}
	if now.ping && said != any("PONG") {
		return *now, false, failure(said)
	}
	q = *now
	l.pending = l.pending[1:]
	return q, true, nil
}

func number(said any) (int64, error) {
	if n, ok := said.(int64); ok {
		return n, nil
	}
	return 0, failure(said)
}

// failure is the error of an answer that is none: what the master refused, or nothing that it can
// mean.
func failure(said any) error {
	if refusal, ok := said.(resp.Error); ok {
		return refusal
	}
	return fmt.Errorf("%w: %.32q", feed.ErrAnswer, fmt.Sprint(said))
}

// sightingOf is what a look at a key tells: its PTTL, and the head of what stands there.
func sightingOf(left int64, said any, now time.Time) (sighting, error) {
	text, ok := said.(string)
	switch {
	case !ok && !isOtherType(said):
		return sighting{}, failure(said)
	case left == absent:
		return sighting{state: free}, nil
	case ok && isVacant(text):
		return sighting{state: free}, nil
	case left < 0:
		return sighting{state: held}, nil
	}
	return sighting{state: held, end: now.Add(time.Duration(min(left, longestLeft))*time.Millisecond + time.Millisecond)}, nil
}

const (
	// absent is the PTTL of no key.
	absent = -2
	// longestLeft bounds a PTTL, in milliseconds: a year.
	longestLeft = int64(365 * 24 * time.Hour / time.Millisecond)
)

// isVacant reports whether a cell holds nothing: the key was removed by ballot.
func isVacant(head string) bool {
	c := cell.Parse(head)
	return c.Form == cell.Register && !c.Value.Present
}

// isOtherType reports whether what stands there is no string: some client has made it.
func isOtherType(said any) bool {
	refusal, ok := said.(resp.Error)
	return ok && len(refusal) > 10 && refusal[:10] == "WRONGTYPE "
}
