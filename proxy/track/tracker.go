package track

import (
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/redirect"
)

// Tracker follows one client's connection to the upstream: it derives the state from the replies
// that are expected and the bytes that arrive. It has no lock of its own, and does no I/O.
type Tracker struct {
	// State is the known state of the connection.
	State State
	// Awaited holds the pending replies.
	Awaited Awaited
	// Redirects finds redirects among the replies.
	Redirects redirect.Filter

	replies  resp.ReplyScanner
	ownReply bool // the current reply answers a command of the proxy's own
}

// NewTracker returns a tracker for connections that begin with database db and, if urlLogin is set,
// with the login of the upstream's URL.
func NewTracker(db int, urlLogin bool) Tracker {
	t := Tracker{State: newState()}
	t.State.DB, t.State.URLLogin = db, urlLogin
	return t
}

// Begin prepares the tracker for the bytes of a new connection.
func (t *Tracker) Begin() {
	t.replies, t.ownReply = resp.ReplyScanner{}, false
	t.Redirects.Begin()
}

// Lost ends the connection. The next one begins with database db. Only the count of the client's
// changes of user is kept.
func (t *Tracker) Lost(db int) {
	identity, urlLogin := t.State.Identity, t.State.URLLogin
	t.Awaited, t.State = Awaited{}, newState()
	t.State.DB, t.State.Identity, t.State.URLLogin = db, identity, urlLogin
}

// Inside reports whether a reply has begun and not ended.
func (t *Tracker) Inside() bool { return t.replies.Inside() }

// InsideOwn reports whether the reply answers a command of the proxy's own.
func (t *Tracker) InsideOwn() bool { return t.replies.Inside() && t.ownReply }

// Settled reports whether no reply is pending.
func (t *Tracker) Settled() bool { return !t.replies.Inside() && t.Awaited.Empty() }

// Part is a piece of the upstream's bytes.
type Part struct {
	// Size is its length in bytes.
	Size int
	// Own is set if it belongs to a reply to the proxy's own command, Whole if it ends that reply.
	Own, Whole bool
	// Filtered is set if the client gets Instead in its place. Redirect is the redirect that was
	// found, set at its end.
	Filtered bool
	Instead  []byte
	Redirect string
}

// Next returns the next piece of the upstream's bytes. It ends at the end of a reply, or of several
// replies that change nothing, or with p. Next returns an error if the reply to a command of the
// proxy's own is not RESP. After any other bytes that are not RESP, the rest is a stream.
func (t *Tracker) Next(p []byte) (Part, error) {
	if n := t.skipPlain(p); n > 0 {
		return Part{Size: n}, nil
	}
	first := t.Awaited.first()
	if !t.replies.Inside() {
		t.ownReply = first != nil && first.Kind == OwnCommand && p[0] != '>'
		// An unexpected error is the last reply: too many clients, for instance.
		t.State.Stream = t.State.Stream || first == nil && p[0] == '-'
		t.replies.KeepHead = first == nil || first.Kind != Plain || p[0] == '>' || t.State.GetsUnsolicited()
	}
	part := Part{Own: t.ownReply}
	n, ended, err := t.replies.Scan(p)
	part.Size = n
	if part.Filtered = !part.Own && t.Redirects.Looks(byte(t.replies.Kind())); part.Filtered {
		part.Instead, part.Redirect = t.Redirects.Take(p[:n], ended || err != nil)
	}
	switch {
	case err != nil && part.Own:
		return part, err
	case err != nil:
		t.State.Stream = true
	}
	part.Whole = ended && t.State.reply(&t.Awaited, &t.replies)
	return part, nil
}

// skipPlain consumes whole simple replies at the beginning of p, while the expected replies change
// nothing, and returns their length in bytes. It does what the scanner would do, in a fifth of the
// time.
func (t *Tracker) skipPlain(p []byte) (n int) {
	first := t.Awaited.first()
	if first == nil || first.Kind != Plain || t.replies.Inside() || t.State.Multi || t.State.GetsUnsolicited() {
		return 0
	}
	for first.N > 0 && n < len(p) && !t.Redirects.Looks(p[n]) {
		size := resp.SimpleReplyLen(p[n:])
		if size == 0 {
			break
		}
		n += size
		first.N--
	}
	if first.N == 0 {
		t.Awaited.pop()
	}
	return n
}

// Streaming reports whether the stream stops being a sequence of replies at the next byte. That is
// so after a SYNC, unless it is refused, and after an EXEC that contains replies which are not its
// elements.
func (t *Tracker) Streaming(next byte) bool {
	if first := t.Awaited.first(); first != nil && !t.replies.Inside() && next != '-' {
		odd := first.Kind == Exec && t.State.queuedOdd && next == '*'
		t.State.Stream = t.State.Stream || first.Kind == Sync || odd
	}
	return t.State.Stream
}
