package track

import (
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/redirect"
)

// Tracker tracks one client's connection to the upstream: it derives the state from the expected
// replies and the bytes that arrive. It has no lock, and does no I/O.
type Tracker struct {
	// State is the known state of the connection.
	State State
	// AwaitedReplies holds the pending replies.
	AwaitedReplies AwaitedReplies
	// Redirects finds redirects among the replies.
	Redirects redirect.Filter

	replies       resp.ReplyScanner
	internalReply bool // the current reply answers an internal command
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
	t.replies, t.internalReply = resp.ReplyScanner{}, false
	t.Redirects.Begin()
}

// RecordDisconnect records the end of the connection. The next connection begins with database db.
// The count of the client's changes of user remains.
func (t *Tracker) RecordDisconnect(db int) {
	identity, urlLogin := t.State.UserChanges, t.State.URLLogin
	t.AwaitedReplies, t.State = AwaitedReplies{}, newState()
	t.State.DB, t.State.UserChanges, t.State.URLLogin = db, identity, urlLogin
}

// InsideReply reports whether a reply has begun and not ended.
func (t *Tracker) InsideReply() bool { return t.replies.InReply() }

// InsideInternalReply reports whether a reply to an internal command has begun and not ended.
func (t *Tracker) InsideInternalReply() bool { return t.replies.InReply() && t.internalReply }

// Settled reports whether no reply is pending.
func (t *Tracker) Settled() bool { return !t.replies.InReply() && t.AwaitedReplies.Empty() }

// ExpectPlain expects n replies that change nothing, unless replies cannot be matched with commands.
func (t *Tracker) ExpectPlain(n int) {
	if !t.State.Stream {
		t.AwaitedReplies.AddPlain(n)
	}
}

// Expect expects replies to a command, unless replies cannot be matched with commands.
func (t *Tracker) Expect(s ExpectedReply) {
	if !t.State.Stream {
		t.AwaitedReplies.Add(s)
	}
}

// Part describes a piece of the upstream's bytes.
type Part struct {
	// Size is the length of the piece in bytes.
	Size int
	// InternalReply is set if the piece belongs to a reply to an internal command,
	// EndsInternalReply if the piece ends that reply.
	InternalReply, EndsInternalReply bool
	// Filtered is set if the client gets Replacement in place of the piece. Redirect is the kind of
	// the redirect that ends with the piece.
	Filtered    bool
	Replacement []byte
	Redirect    string
}

// Next returns the next piece of the upstream's bytes. The piece ends at the end of a reply, of
// several replies that change nothing, or of p. Next returns an error if the reply to an internal
// command is not RESP. After any other bytes that are not RESP, the rest is a stream.
func (t *Tracker) Next(p []byte) (Part, error) {
	if n := t.skipPlain(p); n > 0 {
		return Part{Size: n}, nil
	}
	first := t.AwaitedReplies.first()
	if !t.replies.InReply() {
		t.internalReply = first != nil && first.Kind == InternalCommand && p[0] != '>'
		// An unexpected error is the last reply, for example if the upstream has too many clients.
		t.State.Stream = t.State.Stream || first == nil && p[0] == '-'
		t.replies.KeepHead = first == nil || first.Kind != Plain || p[0] == '>' || t.State.GetsMessages()
	}
	part := Part{InternalReply: t.internalReply}
	n, ended, err := t.replies.Scan(p)
	part.Size = n
	if part.Filtered = !part.InternalReply && t.Redirects.MustFilter(byte(t.replies.Kind())); part.Filtered {
		part.Replacement, part.Redirect = t.Redirects.Filter(p[:n], ended || err != nil)
	} else if t.Redirects.Nodes != nil && first != nil && first.Kind == Exec && t.replies.Kind() == resp.Array {
		t.filterElements(&part, p[:n], ended)
	}
	switch {
	case err != nil && part.InternalReply:
		return part, err
	case err != nil:
		t.State.Stream = true
	}
	part.EndsInternalReply = ended && t.State.handleReply(&t.AwaitedReplies, &t.replies)
	return part, nil
}

// filterElements filters redirects among the elements of EXEC's reply.
func (t *Tracker) filterElements(part *Part, piece []byte, ended bool) {
	var kinds []string
	part.Filtered = true
	part.Replacement, kinds = t.Redirects.FilterElements(piece)
	if len(kinds) > 0 {
		part.Redirect = kinds[0]
	}
	if ended {
		t.Redirects.Begin()
	}
}

// skipPlain consumes whole simple replies at the beginning of p, while the expected replies change
// nothing, and returns their length in bytes. It is five times as fast as the scanner.
func (t *Tracker) skipPlain(p []byte) (n int) {
	first := t.AwaitedReplies.first()
	if first == nil || first.Kind != Plain || t.replies.InReply() || t.State.Multi || t.State.GetsMessages() {
		return 0
	}
	for first.N > 0 && n < len(p) && !t.Redirects.MustFilter(p[n]) {
		size := resp.SimpleReplyLen(p[n:])
		if size == 0 {
			break
		}
		n += size
		first.N--
	}
	if first.N == 0 {
		t.AwaitedReplies.pop()
	}
	return n
}

// Streaming reports whether the bytes from next on no longer form a sequence of replies. It returns
// true after a SYNC that the upstream does not refuse. It also returns true from the reply to an
// EXEC on, if the transaction contains an untrackable command.
func (t *Tracker) Streaming(next byte) bool {
	if first := t.AwaitedReplies.first(); first != nil && !t.replies.InReply() && next != '-' {
		untrackable := first.Kind == Exec && t.State.queuedUntrackable && next == '*'
		t.State.Replicating = t.State.Replicating || first.Kind == Sync
		t.State.Stream = t.State.Stream || t.State.Replicating || untrackable
	}
	return t.State.Stream
}

// MustFilterStream reports whether redirects in a stream must be filtered: a cluster's node also
// redirects clients whose replies the proxy cannot match with commands. A replica gets no replies.
func (t *Tracker) MustFilterStream() bool { return t.Redirects.Nodes != nil && !t.State.Replicating }
