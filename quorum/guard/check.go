package guard

import (
	"context"
	"strconv"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// Check checks at the end of a batch whether the master is still the server that votes. Callers
// reuse a Check for consecutive batches in the same database. The zero value checks nothing.
type Check struct {
	guard *Guard
	// trust is the marker under which the votes of the batch count.
	trust trust
	probe
	// encoded holds the commands of the check in RESP. Begin clears it when the commands change.
	encoded       []byte
	encodedWrites bool
}

// NeedsEnrolment reports whether Begin would have to send a script to the master first.
func (g *Guard) NeedsEnrolment(db int) bool {
	if g.set.opts.Off || db == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trust.Nonce != "" && !g.enrolledDBs[db]
}

// Begin prepares the check w of a batch in a database. writes is set if the batch writes.
func (g *Guard) Begin(ctx context.Context, w *Check, db int, writes bool) {
	if g.set.opts.Off {
		w.guard = nil
		return
	}
	t := g.currentTrust()
	if g.NeedsEnrolment(db) {
		g.enrol(ctx, db, t)
	}
	if w.trust.Nonce != t.Nonce || w.db != db {
		w.encoded, w.field = w.encoded[:0], ""
	}
	if w.field == "" && t.Nonce != "" {
		w.encoded, w.field = w.encoded[:0], marker.AppendDatabase(t.Nonce, db)
	}
	w.guard, w.trust, w.db, w.writes = g, t, db, writes
	w.hasSequence, w.clockReading, w.knownCanary = false, ClockReading{}, canary{}
	if w.field != "" {
		w.floor, w.knownCanary = g.knownState(w.field, db)
	}
}

// AppendTo appends the commands of the check, to be sent after the commands of the batch.
func (w *Check) AppendTo(b []byte) []byte {
	if w.guard == nil {
		return b
	}
	if len(w.encoded) == 0 || w.encodedWrites != w.writes {
		w.encoded, w.encodedWrites = w.encode(w.encoded[:0]), w.writes
	}
	return append(b, w.encoded...)
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

// Read reads the replies to the check. It returns only errors of the reader. An unusable reply
// counts as missing.
func (w *Check) Read(r *resp.Reader, sentAt time.Time) error {
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
	serverTime, err := readTime(r)
	if err == nil && serverTime != 0 {
		w.clockReading = ClockReading{SentAt: sentAt, ReceivedAt: time.Now(), ServerTime: serverTime}
	}
	return err
}

// readSequence reads the sequence number: an integer, or a string of digits.
func (w *Check) readSequence(r *resp.Reader) error {
	t, err := r.Next()
	switch {
	case err != nil:
		return err
	case t.Kind == resp.Int:
		w.sequence, w.hasSequence = t.N, true
	case t.Kind == resp.Bulk:
		n, err := strconv.ParseInt(string(t.Text), 10, 64)
		w.sequence, w.hasSequence = n, err == nil
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
	case string(t.Text) != w.canary: // copy it only after a change, which is rare
		w.canary = string(t.Text)
	}
	return nil
}

// readTime reads seconds and microseconds. It returns zero if the reply is not two numbers.
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
			parts[i] = parseDigits(t.Text)
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

// parseDigits parses a number of at most 10 digits. It returns -1 for any other text.
func parseDigits(text []byte) int64 {
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

// parseTime parses seconds and microseconds. It returns zero if that fails.
func parseTime(parts []string) time.Duration {
	seconds, err1 := strconv.ParseInt(parts[0], 10, 64)
	micros, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(seconds)*time.Second + time.Duration(micros)*time.Microsecond
}
