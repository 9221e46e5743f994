package proxy

import (
	"context"
	"fmt"
	"math"

	"redlock-proxy/commands"
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/lockdetect"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
)

// keySearch looks for lock keys in the frames of an input, where such are configured, and for what
// a user of the proxy's own may not send.
type keySearch struct {
	in     *input
	table  *commands.Table
	who    *login.Client
	routes bool   // lock keys are configured
	search search // of the current frame
}

// search is how much is known of the current frame's keys.
type search struct {
	rule  *keys.Rule // not nil: they decide where the frame goes, and have not yet
	judge bool       // it must be found out whether the client may send the command
	lock  bool       // there is a lock key, or the client may not send the command
	whole bool       // the frame's end was scanned
	ahead *keyWalk   // of a frame that is forwarded before all its keys are known
	// suspect: it may take or release a lock on the upstream; sent is what was sent of it.
	suspect bool
	sent    []byte
}

// found is what a search has come to.
type found uint8

const (
	nothing   found = iota // nothing is to be decided, or was before
	undecided              // more must be read
	passes                 // the frame is forwarded
	stays                  // it is not just forwarded
)

// begins reports whether the keys of the command whose name was just scanned must be
// looked at before it is forwarded.
func (k *keySearch) begins() bool {
	k.search.judge = k.who.IsJudged()
	if !k.routes {
		return k.search.judge
	}
	name, _ := k.in.scanner.Name() // one that is longer than what is kept of it is not known
	k.search.rule = k.table.Keyed(name)
	return k.search.rule != nil || k.search.judge
}

// seek looks for the keys of such a command, as far as it has been read. Where there
// is no lock key the frame is forwarded: as soon as the first argument is there, if
// that is the only key. Nothing is decided before, so that no beginning of a command
// on a lock key is ever sent.
func (k *keySearch) seek(ctx context.Context) (found, error) {
	switch {
	case k.search.rule == nil && !k.search.judge:
		return nothing, nil
	case k.in.scanner.Inline():
		return k.end(k.isHeld(k.in.scanner.InlineArgs())), nil
	case !k.search.judge && k.search.rule.First():
		key, size, known := k.in.firstArg()
		if !known {
			return undecided, nil
		}
		return k.end(k.table.LockKeys().Match(key) || size > maxFrame && k.table.LockKeys().MayMatch(key)), nil
	}
	return k.seekAll(ctx)
}

// isHeld reports whether a command is not just forwarded, by all its words.
func (k *keySearch) isHeld(words [][]byte) bool {
	return k.isRefused(words, len(words)) || k.table.Route(commands.Situation{}, words).Verb != commands.Forward
}

// isRefused reports whether the client may not have a command forwarded, of so many words of which
// the first ones are given.
func (k *keySearch) isRefused(words [][]byte, total int) bool {
	return k.search.judge && k.who.Refusal(words, total) != ""
}

// end ends the search.
func (k *keySearch) end(lock bool) found {
	k.search.rule, k.search.judge, k.search.lock = nil, false, lock
	if lock {
		return stays
	}
	return passes
}

// seekAll reads the whole command, as far as one may be held.
func (k *keySearch) seekAll(ctx context.Context) (found, error) {
	ev, err := k.in.eventUpTo(min(k.in.end, k.in.frame+maxFrame))
	frame := k.in.held()
	switch {
	case err != nil:
		return undecided, err
	case ev == resp.FrameEnd:
		k.search.whole = true
		k.in.args, _, _ = resp.Words(k.in.args[:0], frame, math.MaxInt)
		return k.end(k.isHeld(k.in.args)), nil
	case len(frame) >= maxFrame:
		return k.seekAhead(ctx, frame)
	}
	return undecided, nil
}

// seekAhead decides about a command that is too long to be held by its beginning.
// Where lock keys may stand further on, it is looked at as it is forwarded.
func (k *keySearch) seekAhead(ctx context.Context, begin []byte) (found, error) {
	words, total, size := resp.Words(nil, begin, math.MaxInt)
	if k.isRefused(words, total) {
		return k.end(true), nil
	}
	places, locked, known := k.table.Ahead(ctx, words, total)
	if locked || !known || places.Last() < len(words) {
		return k.end(locked || !known), nil
	}
	k.search.ahead = &keyWalk{index: len(words), places: places, isLock: k.table.LockKeys().Match, mayBeLock: k.table.LockKeys().MayMatch}
	return k.end(false), k.search.ahead.over(begin[size:])
}

// event scans on, and looks at the keys of a frame that is forwarded before all of
// them are known.
func (k *keySearch) event() (resp.FrameEvent, error) {
	from := k.in.scanned
	ev, err := k.in.event()
	if k.search.ahead != nil && err == nil {
		err = k.search.ahead.over(k.in.buf[from:k.in.scanned])
	}
	return ev, err
}

// longKeyBegin is how much of a key that is too long to be held is looked at.
const longKeyBegin = 1 << 10

// firstArg is the first argument of the command whose name was just scanned, once it
// is whole, and its size. Without one, or where it is no bulk, it is empty. Of one that
// is too long to be held it is the beginning.
func (in *input) firstArg() (arg []byte, size int64, known bool) {
	p := in.buf[in.scanned:in.end]
	switch {
	case in.scanner.Args() < 2:
		return nil, 0, true
	case len(p) < 2:
		return nil, 0, false
	}
	p = p[2:] // the line end after the name
	size, n, known := in.scanner.PeekBulk(p)
	if !known {
		return nil, 0, false
	}
	length := max(size, 0)
	if length > maxFrame {
		length = longKeyBegin
	}
	if p = p[n:]; int64(len(p)) < length {
		return nil, size, false
	}
	return p[:length], size, true
}

// keyWalk goes through the arguments of a command as its bytes pass by.
type keyWalk struct {
	index  int // of the current argument
	places keys.Places
	isLock func(key []byte) bool
	// mayBeLock is isLock for one that is too long to be held, by its beginning.
	mayBeLock func(begin []byte) bool

	header resp.HeaderWalk
	left   int    // bytes of its payload to come, the line end included; 0: in its header
	key    []byte // what has passed of one that may be a lock key
}

// over goes over more bytes, which are well-formed. The error names a lock key.
func (w *keyWalk) over(p []byte) error {
	for len(p) > 0 {
		if w.left == 0 {
			n, size, whole := w.header.Over(p)
			p = p[n:]
			if !whole {
				return nil
			}
			w.left, w.key = size+2, w.key[:0]
		}
		part := p[:min(w.left, len(p))]
		p = p[len(part):]
		if w.left -= len(part); w.places.Has(w.index) && len(w.key) < longKeyBegin+maxFrame {
			w.key = append(w.key, part...)
		}
		if w.left == 0 {
			if err := w.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// end is the end of an argument, and of what stands after it.
func (w *keyWalk) end() error {
	index := w.index
	w.index++
	key := w.key[:max(0, len(w.key)-2)]
	if w.places.Has(index) && (w.isLock(key) || len(key) > maxFrame && w.mayBeLock(key[:longKeyBegin])) {
		return &resp.RequestError{Text: fmt.Sprintf("command too long: it names lock key '%.128s' beyond its first %d bytes", key, maxFrame)}
	}
	return nil
}

// maxSuspect bounds what is kept of a command that may be one of a lock and is sent in
// parts, in bytes. With more it is no lock's.
const maxSuspect = 8 << 10

// suspects marks the command whose name was just scanned, if it may take or release a lock
// on the upstream. It is looked at when it is whole, and is sent meanwhile.
func (k *keySearch) suspects() {
	name, _ := k.in.scanner.Name()
	if !k.in.scanner.Inline() {
		k.search.suspect = lockdetect.Suspect(name, k.in.scanner.Args())
		return
	}
	if words := k.in.scanner.InlineArgs(); lockdetect.Suspect(name, len(words)) { // gone with the end of the frame
		k.table.Observe(words)
	}
}

// keepSent keeps the part of a suspect that is about to be sent.
func (k *keySearch) keepSent() {
	if !k.search.suspect {
		return
	}
	part := k.in.held()
	if len(k.search.sent)+len(part) > maxSuspect {
		k.search.suspect, k.search.sent = false, nil
		return
	}
	k.search.sent = append(k.search.sent, part...)
}

// sawWhole has a look at a suspect that has ended.
func (k *keySearch) sawWhole() {
	if !k.search.suspect {
		return
	}
	frame := k.in.held()
	if len(k.search.sent) > 0 {
		frame = append(k.search.sent, frame...)
	}
	var words [lockdetect.Words][]byte
	found, _, _ := resp.Words(words[:0], frame, len(words))
	k.table.Observe(found)
}
