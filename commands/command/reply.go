package command

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
)

// Reply collects replies in RESP2 or, where Proto is 3, RESP3.
type Reply struct {
	// Proto is the protocol that the client speaks: 2 or 3.
	Proto int
	// Bytes is what has been written.
	Bytes []byte
	// Now is the monotonic clock by which a validity is measured; nil: that of the system.
	Now func() time.Time

	// Elsewhere is set where the command was not carried out, because the locks are elsewhere by
	// now.
	Elsewhere bool

	mark        int // where the reply to the current command begins
	undelivered []undo
	delivered   []func()
	validity    validity
}

// undo takes back what a reply grants that ends there.
type undo struct {
	end int
	run func()
}

// validity is one in a reply, and where; ends is when it is over, zero for none.
type validity struct {
	at, end int
	ends    time.Time
}

// begin begins the reply to a command.
func (r *Reply) begin(proto int) { r.Proto, r.mark = proto, len(r.Bytes) }

// TakeBack removes what was written from there on. What that told of stays done when what is before
// it was delivered.
func (r *Reply) TakeBack(from int) {
	r.Bytes = r.Bytes[:min(from, len(r.Bytes))]
	for i, u := range r.undelivered {
		r.undelivered[i].end = min(u.end, len(r.Bytes))
	}
	if r.validity.end > len(r.Bytes) {
		r.validity = validity{}
	}
}

// Keep has what is here of the reply to the current command stay, whatever CLIENT REPLY says:
// messages are no replies.
func (r *Reply) Keep() { r.mark = len(r.Bytes) }

// Raw appends bytes that are a reply already.
func (r *Reply) Raw(b []byte) { r.Bytes = append(r.Bytes, b...) }

// Int appends an integer.
func (r *Reply) Int(n int64) { r.Bytes = redcon.AppendInt(r.Bytes, n) }

// Bulk appends a bulk string.
func (r *Reply) Bulk(s string) { r.Bytes = redcon.AppendBulkString(r.Bytes, s) }

// Text appends a text for people: in RESP3 a verbatim string, else a bulk string.
func (r *Reply) Text(s string) {
	if r.Proto != 3 {
		r.Bulk(s)
		return
	}
	at := len(r.Bytes)
	r.Bulk("txt:" + s)
	r.Bytes[at] = '='
}

// Status appends a simple string. Line ends in it become blanks.
func (r *Reply) Status(s string) {
	r.Bytes = redcon.AppendString(r.Bytes, s)
}

// Error appends an error; text begins with its upper-case code. Line ends and zero bytes
// in it become blanks.
func (r *Reply) Error(text string) {
	r.Bytes = redcon.AppendError(r.Bytes, zeroBytes.Replace(text))
}

var zeroBytes = strings.NewReplacer("\x00", " ")

// Null appends the null of the protocol: _ in RESP3, a null bulk in RESP2.
func (r *Reply) Null() {
	if r.Proto == 3 {
		r.Bytes = append(r.Bytes, "_\r\n"...)
		return
	}
	r.Bytes = redcon.AppendNull(r.Bytes)
}

// NullArray appends the null of an array: _ in RESP3, a null array in RESP2.
func (r *Reply) NullArray() {
	if r.Proto == 3 {
		r.Null()
		return
	}
	r.Bytes = redcon.AppendArray(r.Bytes, -1)
}

// Array begins an array of n elements.
func (r *Reply) Array(n int) { r.Bytes = redcon.AppendArray(r.Bytes, n) }

// Map begins a map of n pairs: in RESP2 an array of 2n elements.
func (r *Reply) Map(n int) { r.header('%', n, 2*n) }

// Set begins a set of n elements: in RESP2 an array.
func (r *Reply) Set(n int) { r.header('~', n, n) }

func (r *Reply) header(resp3 resp.Kind, n, flat int) {
	if r.Proto != 3 {
		r.Array(flat)
		return
	}
	r.Bytes = resp.AppendHeader(r.Bytes, resp3, int64(n))
}

// Strings appends an array of bulk strings.
func (r *Reply) Strings(all []string) {
	r.Array(len(all))
	for _, s := range all {
		r.Bulk(s)
	}
}

// Fields are names and their values, one after the other.
type Fields []any

// Words are a set of texts.
type Words []string

// Put appends a value: nil, a string, a number, Fields as a map, Words, or an array.
func (r *Reply) Put(value any) {
	switch v := value.(type) {
	case string:
		r.Bulk(v)
	case int:
		r.Int(int64(v))
	case int64:
		r.Int(v)
	case []string:
		r.Strings(v)
	case Words:
		r.Set(len(v))
		for _, word := range v {
			r.Bulk(word)
		}
	case Fields:
		r.Map(len(v) / 2)
		for _, part := range v {
			r.Put(part)
		}
	case []any:
		r.Array(len(v))
		for _, part := range v {
			r.Put(part)
		}
	case func(*Reply):
		v(r)
	default:
		r.Null()
	}
}

// Statuses appends an array of simple strings.
func (r *Reply) Statuses(all []string) {
	r.Array(len(all))
	for _, s := range all {
		r.Status(s)
	}
}

// Validity appends, in milliseconds, for how long from now a lock is valid. It counts from when the
// reply leaves: so that is delivered before another command is begun, and Leaves is called just
// before.
func (r *Reply) Validity(left time.Duration) {
	at := len(r.Bytes)
	r.Int(left.Milliseconds())
	r.validity = validity{at, len(r.Bytes), r.now().Add(left)}
}

// IsUrgent reports whether a validity is among what is to be delivered.
func (r *Reply) IsUrgent() bool { return !r.validity.ends.IsZero() }

// Leaves has a validity be what is left of it now.
func (r *Reply) Leaves() {
	if !r.IsUrgent() {
		return
	}
	v := r.validity
	left := max(0, v.ends.Sub(r.now()))
	var room [24]byte
	now := redcon.AppendInt(room[:0], left.Milliseconds())
	shift := len(now) - (v.end - v.at)
	r.Bytes = slices.Replace(r.Bytes, v.at, v.end, now...)
	for i, u := range r.undelivered {
		if u.end >= v.end {
			r.undelivered[i].end += shift
		}
	}
	r.validity.end += shift
}

func (r *Reply) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// IfUndelivered has undo called should the replies so far not reach the client's socket as a whole.
func (r *Reply) IfUndelivered(run func()) {
	r.undelivered = append(r.undelivered, undo{len(r.Bytes), run})
}

// WhenDelivered has what follows be called when the replies so far are on their way, or never.
func (r *Reply) WhenDelivered(follows func()) { r.delivered = append(r.delivered, follows) }

// Handed removes the first n bytes, which the client's socket has taken: what the replies in them
// tell of stays done, whatever becomes of the others.
func (r *Reply) Handed(n int) {
	if n == len(r.Bytes) {
		r.Delivered()
		return
	}
	r.undelivered = slices.DeleteFunc(r.undelivered, func(u undo) bool { return u.end <= n })
	for i := range r.undelivered {
		r.undelivered[i].end -= n
	}
	r.Bytes, r.mark, r.validity = slices.Delete(r.Bytes, 0, n), max(0, r.mark-n), validity{}
}

// Delivered empties the reply: its bytes are on their way.
func (r *Reply) Delivered() {
	r.empty()
	for _, follows := range r.delivered {
		follows()
	}
	clear(r.delivered)
	r.delivered = r.delivered[:0]
}

func (r *Reply) empty() {
	r.Bytes, r.mark = r.Bytes[:0], 0
	clear(r.undelivered)
	r.undelivered, r.validity = r.undelivered[:0], validity{}
}

// Undelivered runs what IfUndelivered was given, and empties the reply.
func (r *Reply) Undelivered() {
	for _, u := range r.undelivered {
		u.run()
	}
	r.empty()
	r.delivered = nil
}

// Double appends the digits of a number that need not be an integer: in RESP2 as a bulk string.
func (r *Reply) Double(text string) {
	if r.Proto != 3 {
		r.Bulk(text)
		return
	}
	r.Bytes = append(append(append(r.Bytes, ','), text...), '\r', '\n')
}

// Fail appends the error reply for what went wrong: a code that no client library retries by
// itself, then what happened.
func (r *Reply) Fail(err error) {
	r.Elsewhere = r.Elsewhere || errors.As(err, new(*quorum.ElsewhereError))
	r.Error(Failure(err))
}

// Failure is the text of Fail.
func Failure(err error) string {
	if errors.As(err, new(*quorum.NoQuorumError)) {
		return "NOQUORUM " + err.Error()
	}
	if refusal, is := err.(interface{ Reply() string }); is { // the upstream's
		return refusal.Reply()
	}
	return "ERR " + err.Error()
}
