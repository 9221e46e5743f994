package guard

import (
	"context"
	"strconv"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// Check looks at a master at the end of a batch: whether it is still the one that votes.
// It is for one batch after the other, all of the same database; its zero value is for one
// after which nothing is looked at.
type Check struct {
	guard *Guard
	// trust is that under which the votes of the batch count.
	trust trust
	look
	// asks are the commands of the look, as long as they are the same.
	asks       []byte
	asksWrites bool
}

// NeedsEnrolment reports whether Begin would have to ask the master something first.
func (g *Guard) NeedsEnrolment(db int) bool {
	if g == nil || g.set.off || db == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trust.Nonce != "" && !g.enrolled[db]
}

// Begin is for a batch that is about to leave, in a database, and writes or only reads.
func (g *Guard) Begin(ctx context.Context, w *Check, db int, writes bool) {
	if g == nil || g.set.off {
		w.guard = nil
		return
	}
	under := g.trusted()
	if g.NeedsEnrolment(db) {
		g.enrol(ctx, db, under)
	}
	if w.trust.Nonce != under.Nonce || w.db != db {
		w.asks, w.field = w.asks[:0], ""
	}
	if w.field == "" && under.Nonce != "" {
		w.asks, w.field = w.asks[:0], marker.InDatabase(under.Nonce, db)
	}
	w.guard, w.trust, w.db, w.writes = g, under, db, writes
	w.number, w.sighting, w.known = false, Sighting{}, canary{}
	if w.field != "" {
		w.floor, w.known = g.knows(w.field, db)
	}
}

// AppendTo appends the commands of the look, to go after those of the batch.
func (w *Check) AppendTo(b []byte) []byte {
	if w.guard == nil {
		return b
	}
	if len(w.asks) == 0 || w.asksWrites != w.writes {
		w.asks, w.asksWrites = w.encode(w.asks[:0]), w.writes
	}
	return append(b, w.asks...)
}

func (w *Check) encode(b []byte) []byte {
	if w.field != "" {
		if w.writes {
			b = resp.AppendCommand(b, "HINCRBY", script.SequenceKey, w.field, 1)
		} else {
			b = resp.AppendCommand(b, "HGET", script.SequenceKey, w.field)
		}
		b = resp.AppendCommand(b, "GET", script.CanaryKey)
	}
	return resp.AppendCommand(b, "TIME")
}

// Read reads the answers to the look. Errors are those of the reader; an answer that is
// none counts as missing.
func (w *Check) Read(r *resp.Reader, sent time.Time) error {
	if w.guard == nil {
		return nil
	}
	if w.field != "" {
		if err := w.readSequence(r); err != nil {
			return err
		}
		if err := w.readCanary(r); err != nil {
			return err
		}
	}
	now, err := readTime(r)
	if err == nil && now != 0 {
		w.sighting = Sighting{Sent: sent, Got: time.Now(), ServerTime: now}
	}
	return err
}

// readSequence takes an integer, or a string of digits.
func (w *Check) readSequence(r *resp.Reader) error {
	t, err := r.Next()
	switch {
	case err != nil:
		return err
	case t.Kind == resp.Int:
		w.sequence, w.number = t.N, true
	case t.Kind == resp.Bulk:
		n, err := strconv.ParseInt(string(t.Text), 10, 64)
		w.sequence, w.number = n, err == nil
	case t.Kind == resp.Array:
		return r.Skip(t.N)
	}
	return nil
}

func (w *Check) readCanary(r *resp.Reader) error {
	t, err := r.Next()
	switch {
	case err != nil:
		return err
	case t.Kind == resp.Array:
		w.canary = ""
		return r.Skip(t.N)
	case t.Kind != resp.Bulk:
		w.canary = ""
	case string(t.Text) != w.canary: // it is the same for long
		w.canary = string(t.Text)
	}
	return nil
}

// readTime takes seconds and microseconds; zero: they are none.
func readTime(r *resp.Reader) (time.Duration, error) {
	t, err := r.Next()
	switch {
	case err != nil:
		return 0, err
	case t.Kind != resp.Array:
		return 0, nil
	case t.N != 2:
		return 0, r.Skip(t.N)
	}
	var parts [2]int64
	for i := range parts {
		t, err := r.Next()
		if err != nil {
			return 0, err
		}
		switch parts[i] = -1; t.Kind {
		case resp.Bulk:
			parts[i] = digits(t.Text)
		case resp.Array:
			if err := r.Skip(t.N); err != nil {
				return 0, err
			}
		}
	}
	if parts[0] < 0 || parts[1] < 0 {
		return 0, nil
	}
	return time.Duration(parts[0])*time.Second + time.Duration(parts[1])*time.Microsecond, nil
}

// digits is a number of so few digits that it counts no more than nanoseconds can; else it
// is negative.
func digits(text []byte) int64 {
	if len(text) == 0 || len(text) > 10 {
		return -1
	}
	n := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// timeOf reads seconds and microseconds; zero: it cannot.
func timeOf(parts []string) time.Duration {
	seconds, err1 := strconv.ParseInt(parts[0], 10, 64)
	micros, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(seconds)*time.Second + time.Duration(micros)*time.Microsecond
}
