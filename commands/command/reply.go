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

// WriteRaw appends encoded bytes.
func (r *Reply) WriteRaw(b []byte) { r.Bytes = append(r.Bytes, b...) }

// WriteInt appends an integer.
func (r *Reply) WriteInt(n int64) { r.Bytes = redcon.AppendInt(r.Bytes, n) }

// WriteBulk appends a bulk string.
func (r *Reply) WriteBulk(s string) { r.Bytes = redcon.AppendBulkString(r.Bytes, s) }

// WriteText appends a text for humans: a verbatim string in RESP3, else a bulk string.
func (r *Reply) WriteText(s string) {
	if r.Proto != 3 {
		r.WriteBulk(s)
		return
	}
	at := len(r.Bytes)
	r.WriteBulk("txt:" + s)
	r.Bytes[at] = '='
}

// WriteStatus appends a simple string. Line ends in it become blanks.
func (r *Reply) WriteStatus(s string) {
	r.Bytes = redcon.AppendString(r.Bytes, s)
}

// WriteError appends an error. text begins with its upper-case code. Line ends and zero bytes in it
// become blanks.
func (r *Reply) WriteError(text string) {
	r.Bytes = redcon.AppendError(r.Bytes, zeroBytes.Replace(text))
}

var zeroBytes = strings.NewReplacer("\x00", " ")

// WriteNull appends the null of the protocol: _ in RESP3, a null bulk string in RESP2.
func (r *Reply) WriteNull() {
	if r.Proto == 3 {
		r.Bytes = append(r.Bytes, "_\r\n"...)
		return
	}
	r.Bytes = redcon.AppendNull(r.Bytes)
}

// WriteNullArray appends the null of an array: _ in RESP3, a null array in RESP2.
func (r *Reply) WriteNullArray() {
	if r.Proto == 3 {
		r.WriteNull()
		return
	}
	r.Bytes = redcon.AppendArray(r.Bytes, -1)
}

// WriteArray appends the header of an array of n elements.
func (r *Reply) WriteArray(n int) { r.Bytes = redcon.AppendArray(r.Bytes, n) }

// WriteMap appends the header of a map of n pairs. In RESP2, it is an array of 2n elements.
func (r *Reply) WriteMap(n int) { r.writeHeader('%', n, 2*n) }

// WriteSet appends the header of a set of n elements. In RESP2, it is an array.
func (r *Reply) WriteSet(n int) { r.writeHeader('~', n, n) }

func (r *Reply) writeHeader(resp3 resp.Kind, n, flatLength int) {
	if r.Proto != 3 {
		r.WriteArray(flatLength)
		return
	}
	r.Bytes = resp.AppendHeader(r.Bytes, resp3, int64(n))
}

// WriteStrings appends an array of bulk strings.
func (r *Reply) WriteStrings(texts []string) {
	r.WriteArray(len(texts))
	for _, s := range texts {
		r.WriteBulk(s)
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
		r.WriteBulk(v)
	case int:
		r.WriteInt(int64(v))
	case int64:
		r.WriteInt(v)
	case []string:
		r.WriteStrings(v)
	case TextSet:
		r.WriteSet(len(v))
		for _, word := range v {
			r.WriteBulk(word)
		}
	case Fields:
		r.WriteMap(len(v) / 2)
		for _, part := range v {
			r.Put(part)
		}
	case []any:
		r.WriteArray(len(v))
		for _, part := range v {
			r.Put(part)
		}
	case func(*Reply):
		v(r)
	default:
		r.WriteNull()
	}
}

// WriteStatuses appends an array of simple strings.
func (r *Reply) WriteStatuses(all []string) {
	r.WriteArray(len(all))
	for _, s := range all {
		r.WriteStatus(s)
	}
}

// WriteValidity appends the remaining validity of a lock in milliseconds, counted from the time at
// which the proxy sends the reply. The caller must send the reply before the next command begins,
// and call UpdateValidity just before it sends.
func (r *Reply) WriteValidity(remaining time.Duration) {
	at := len(r.Bytes)
	r.WriteInt(remaining.Milliseconds())
	r.validity = validity{at, len(r.Bytes), r.now().Add(remaining)}
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

// OnUndelivered registers a function to call if the replies so far cannot be sent to the client.
func (r *Reply) OnUndelivered(run func()) {
	r.onUndelivered = append(r.onUndelivered, undo{len(r.Bytes), run})
}

// OnDelivered registers a function to call once the proxy has sent the replies so far. The
// function may never run.
func (r *Reply) OnDelivered(run func()) { r.onDelivered = append(r.onDelivered, run) }

// NoteSent removes the first n bytes, which the client's socket has taken. The grants in them are
// final, even if the rest cannot be sent.
func (r *Reply) NoteSent(n int) {
	if n == len(r.Bytes) {
		r.NoteDelivered()
		return
	}
	r.onUndelivered = slices.DeleteFunc(r.onUndelivered, func(u undo) bool { return u.end <= n })
	for i := range r.onUndelivered {
		r.onUndelivered[i].end -= n
	}
	r.Bytes, r.replyStart, r.validity = slices.Delete(r.Bytes, 0, n), max(0, r.replyStart-n), validity{}
}

// NoteDelivered empties the reply after the proxy has sent all bytes, and calls the functions
// registered by OnDelivered.
func (r *Reply) NoteDelivered() {
	r.reset()
	for _, run := range r.onDelivered {
		run()
	}
	clear(r.onDelivered)
	r.onDelivered = r.onDelivered[:0]
}

func (r *Reply) reset() {
	r.Bytes, r.replyStart = r.Bytes[:0], 0
	clear(r.onUndelivered)
	r.onUndelivered, r.validity = r.onUndelivered[:0], validity{}
}

// UndoUndelivered calls the functions registered by OnUndelivered, and empties the reply.
func (r *Reply) UndoUndelivered() {
	for _, u := range r.onUndelivered {
		u.run()
	}
	r.reset()
	r.onDelivered = nil
}

// WriteDouble appends a number, given by its digits. In RESP2, it is a bulk string.
func (r *Reply) WriteDouble(text string) {
	if r.Proto != 3 {
		r.WriteBulk(text)
		return
	}
	r.Bytes = append(append(append(r.Bytes, ','), text...), '\r', '\n')
}

// Fail appends the error reply for err. Client libraries do not retry after the codes NOQUORUM and
// ERR.
func (r *Reply) Fail(err error) {
	r.LocksMoved = r.LocksMoved || errors.As(err, new(*quorum.WrongLocationError))
	r.WriteError(Failure(err))
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
