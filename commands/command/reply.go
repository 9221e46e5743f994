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

// Reply collects replies in RESP2 or RESP3.
type Reply struct {
	// Proto is the protocol that the client speaks: 2 or 3.
	Proto int
	// Bytes holds the replies written so far.
	Bytes []byte
	// Now returns the monotonic time for measuring a validity. nil means time.Now.
	Now func() time.Time

	// LocksMoved is set if the command did not run because the locks have moved.
	LocksMoved bool

	replyStart    int // where the reply to the current command begins
	onUndelivered []undo
	onDelivered   []func()
	validity      validity
}

// undo reverses a grant if the client does not get its reply, which ends at index end.
type undo struct {
	end int
	run func()
}

// validity locates a validity in the replies. expiresAt is zero if there is none.
type validity struct {
	start, end int
	expiresAt  time.Time
}

// begin starts the reply to a command.
func (r *Reply) begin(proto int) { r.Proto, r.replyStart = proto, len(r.Bytes) }

// Truncate removes the replies from an index on. If the client gets the bytes before the index, the
// grants of the removed replies stay.
func (r *Reply) Truncate(from int) {
	r.Bytes = r.Bytes[:min(from, len(r.Bytes))]
	for i, u := range r.onUndelivered {
		r.onUndelivered[i].end = min(u.end, len(r.Bytes))
	}
	if r.validity.end > len(r.Bytes) {
		r.validity = validity{}
	}
}

// Protect protects the bytes written so far from CLIENT REPLY, because messages are not replies.
func (r *Reply) Protect() { r.replyStart = len(r.Bytes) }

// Raw appends encoded bytes.
func (r *Reply) Raw(b []byte) { r.Bytes = append(r.Bytes, b...) }

// Int appends an integer.
func (r *Reply) Int(n int64) { r.Bytes = redcon.AppendInt(r.Bytes, n) }

// Bulk appends a bulk string.
func (r *Reply) Bulk(s string) { r.Bytes = redcon.AppendBulkString(r.Bytes, s) }

// Text appends a text for humans: a verbatim string in RESP3, else a bulk string.
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

// Error appends an error. text begins with its upper-case code. Line ends and zero bytes in it
// become blanks.
func (r *Reply) Error(text string) {
	r.Bytes = redcon.AppendError(r.Bytes, zeroBytes.Replace(text))
}

var zeroBytes = strings.NewReplacer("\x00", " ")

// Null appends the null of the protocol: _ in RESP3, a null bulk string in RESP2.
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

// Array appends the header of an array of n elements.
func (r *Reply) Array(n int) { r.Bytes = redcon.AppendArray(r.Bytes, n) }

// Map appends the header of a map of n pairs. In RESP2, it is an array of 2n elements.
func (r *Reply) Map(n int) { r.header('%', n, 2*n) }

// Set appends the header of a set of n elements. In RESP2, it is an array.
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

// Fields holds names and their values, alternating.
type Fields []any

// TextSet holds a set of texts.
type TextSet []string

// Put appends nil, a string, a number, a map (Fields), a set (TextSet), an array, or the output of
// a function.
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
	case TextSet:
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

// Validity appends the remaining validity of a lock in milliseconds, counted from the time at which
// the proxy sends the reply. The caller must send the reply before the next command begins, and
// call UpdateValidity just before it sends.
func (r *Reply) Validity(left time.Duration) {
	at := len(r.Bytes)
	r.Int(left.Milliseconds())
	r.validity = validity{at, len(r.Bytes), r.now().Add(left)}
}

// IsUrgent reports whether the replies contain a validity.
func (r *Reply) IsUrgent() bool { return !r.validity.expiresAt.IsZero() }

// UpdateValidity updates the validity to the time that remains now.
func (r *Reply) UpdateValidity() {
	if !r.IsUrgent() {
		return
	}
	v := r.validity
	left := max(0, v.expiresAt.Sub(r.now()))
	var buf [24]byte
	digits := redcon.AppendInt(buf[:0], left.Milliseconds())
	shift := len(digits) - (v.end - v.start)
	r.Bytes = slices.Replace(r.Bytes, v.start, v.end, digits...)
	for i, u := range r.onUndelivered {
		if u.end >= v.end {
			r.onUndelivered[i].end += shift
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

// IfUndelivered registers a function to call if the replies so far cannot be sent to the client.
func (r *Reply) IfUndelivered(run func()) {
	r.onUndelivered = append(r.onUndelivered, undo{len(r.Bytes), run})
}

// WhenDelivered registers a function to call once the proxy has sent the replies so far. The
// function may never run.
func (r *Reply) WhenDelivered(run func()) { r.onDelivered = append(r.onDelivered, run) }

// Sent removes the first n bytes, which the client's socket has taken. The grants in them are
// final, even if the rest cannot be sent.
func (r *Reply) Sent(n int) {
	if n == len(r.Bytes) {
		r.Delivered()
		return
	}
	r.onUndelivered = slices.DeleteFunc(r.onUndelivered, func(u undo) bool { return u.end <= n })
	for i := range r.onUndelivered {
		r.onUndelivered[i].end -= n
	}
	r.Bytes, r.replyStart, r.validity = slices.Delete(r.Bytes, 0, n), max(0, r.replyStart-n), validity{}
}

// Delivered empties the reply after the proxy has sent all bytes, and calls the functions
// registered by WhenDelivered.
func (r *Reply) Delivered() {
	r.empty()
	for _, run := range r.onDelivered {
		run()
	}
	clear(r.onDelivered)
	r.onDelivered = r.onDelivered[:0]
}

func (r *Reply) empty() {
	r.Bytes, r.replyStart = r.Bytes[:0], 0
	clear(r.onUndelivered)
	r.onUndelivered, r.validity = r.onUndelivered[:0], validity{}
}

// Undelivered calls the functions registered by IfUndelivered, and empties the reply.
func (r *Reply) Undelivered() {
	for _, u := range r.onUndelivered {
		u.run()
	}
	r.empty()
	r.onDelivered = nil
}

// Double appends a number, given by its digits. In RESP2, it is a bulk string.
func (r *Reply) Double(text string) {
	if r.Proto != 3 {
		r.Bulk(text)
		return
	}
	r.Bytes = append(append(append(r.Bytes, ','), text...), '\r', '\n')
}

// Fail appends the error reply for err, with a code after which no client library retries by
// itself.
func (r *Reply) Fail(err error) {
	r.LocksMoved = r.LocksMoved || errors.As(err, new(*quorum.WrongLocationError))
	r.Error(Failure(err))
}

// Failure returns the error text that Fail appends.
func Failure(err error) string {
	if errors.As(err, new(*quorum.NoQuorumError)) {
		return "NOQUORUM " + err.Error()
	}
	if replier, ok := err.(interface{ Reply() string }); ok { // an error of the upstream
		return replier.Reply()
	}
	return "ERR " + err.Error()
}
