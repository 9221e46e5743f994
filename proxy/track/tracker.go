package track

import (
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/detour"
)

// Tracker follows one client's connection to the upstream: by the answers that are awaited and
// the bytes that come it knows the state. It has no lock of its own, and does no I/O.
type Tracker struct {
	// State is what is known.
	State State
	// Awaited is what the upstream owes.
	Awaited Awaited
	// Detours finds what leads elsewhere among the replies.
	Detours detour.Filter

	replies resp.ReplyScanner
	mine    bool // the current reply is one that the proxy asked for itself
}

// NewTracker is for connections that begin with a database and, maybe, with a login that the
// client does not know.
func NewTracker(db int, urlLogin bool) Tracker {
	t := Tracker{State: newState()}
	t.State.DB, t.State.URLLogin = db, urlLogin
	return t
}

// Begin is for a new connection.
func (t *Tracker) Begin() {
	t.replies, t.mine = resp.ReplyScanner{}, false
	t.Detours.Begin()
}

// Lost is for one that has ended: a new one begins with this database. Nothing of the old one
// is kept but how often the client may have become another user.
func (t *Tracker) Lost(db int) {
	identity, urlLogin := t.State.Identity, t.State.URLLogin
	t.Awaited, t.State = Awaited{}, newState()
	t.State.DB, t.State.Identity, t.State.URLLogin = db, identity, urlLogin
}

// Inside reports whether a reply has begun and not ended.
func (t *Tracker) Inside() bool { return t.replies.Inside() }

// InsideOwn reports whether that is one that the proxy asked for itself.
func (t *Tracker) InsideOwn() bool { return t.replies.Inside() && t.mine }

// Settled reports whether the upstream owes nothing.
func (t *Tracker) Settled() bool { return !t.replies.Inside() && t.Awaited.Empty() }

// Part is a piece of what the upstream sent.
type Part struct {
	// Size is how many bytes it has.
	Size int
	// Own: it belongs to an answer that the proxy asked for itself; Whole: with it that ends.
	Own, Whole bool
	// Instead is what the client gets in its place, where Judged is set. Turned is what was found
	// to lead elsewhere, with its end.
	Judged  bool
	Instead []byte
	Turned  string
}

// Next takes the next piece of what the upstream sent: up to the end of a reply, of several
// from which nothing can be learned, or all there is. An error says that what the proxy asked
// for is not answered by RESP. After other bytes that are none everything is a stream.
func (t *Tracker) Next(p []byte) (Part, error) {
	if n := t.skim(p); n > 0 {
		return Part{Size: n}, nil
	}
	first := t.Awaited.first()
	if !t.replies.Inside() {
		t.mine = first != nil && first.Kind == Capture && p[0] != '>'
		// An error that answers nothing is the last that comes: one client too many, for instance.
		t.State.Stream = t.State.Stream || first == nil && p[0] == '-'
		t.replies.KeepHead = first == nil || first.Kind != Plain || p[0] == '>' || t.State.Unasked()
	}
	part := Part{Own: t.mine}
	n, ended, err := t.replies.Scan(p)
	part.Size = n
	if part.Judged = !part.Own && t.Detours.Looks(byte(t.replies.Kind())); part.Judged {
		part.Instead, part.Turned = t.Detours.Take(p[:n], ended || err != nil)
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

// skim consumes whole simple replies at the beginning of p, as long as such are
// awaited from which nothing can be learned, and returns how many bytes that is. It
// does nothing that the scanner would not do, in a fifth of the time.
func (t *Tracker) skim(p []byte) (n int) {
	first := t.Awaited.first()
	if first == nil || first.Kind != Plain || t.replies.Inside() || t.State.Multi || t.State.Unasked() {
		return 0
	}
	for first.N > 0 && n < len(p) && !t.Detours.Looks(p[n]) {
		size := resp.SimpleReply(p[n:])
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

// Streaming reports whether what begins with the next byte is not a reply: that of
// a SYNC, unless it is refused, or of an EXEC within which there are answers that are
// no elements of it.
func (t *Tracker) Streaming(next byte) bool {
	if first := t.Awaited.first(); first != nil && !t.replies.Inside() && next != '-' {
		odd := first.Kind == Exec && t.State.queuedOdd && next == '*'
		t.State.Stream = t.State.Stream || first.Kind == Sync || odd
	}
	return t.State.Stream
}
