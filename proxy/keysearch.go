package proxy

import (
	"context"
	"fmt"
	"math"

	"redlock-proxy/commands"
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/uncovered"
	"redlock-proxy/internal/resp"
)

// keySearch is how much is known of the current frame's keys. They are looked for
// only where lock keys are configured.
type keySearch struct {
	rule  *keys.Rule // not nil: they decide where the frame goes, and have not yet
	judge bool       // it must be found out whether the client may send the command
	lock  bool       // there is a lock key
	whole bool       // the frame's end was scanned
	ahead *keyWalk   // of a frame that is forwarded before all its keys are known
	// suspect: it may take or release a lock on the upstream; sent is what was sent of it.
	suspect bool
	sent    []byte
}

// keyed reports whether the keys of the command whose name was just scanned must be
// looked at before it is forwarded.
func (f *forwarding) keyed() bool {
	f.keys.judge = f.session.who.IsJudged()
	if !f.routes {
		return f.keys.judge
	}
	name, _ := f.in.scanner.Name() // one that is longer than what is kept of it is not known
	f.keys.rule = f.table.Keyed(name)
	return f.keys.rule != nil || f.keys.judge
}

// seek looks for the keys of such a command, as far as it has been read. Where there
// is no lock key the frame is forwarded: as soon as the first argument is there, if
// that is the only key. Nothing is decided before, so that no beginning of a command
// on a lock key is ever sent.
func (f *forwarding) seek(ctx context.Context) (decided bool, err error) {
	switch {
	case f.keys.rule == nil && !f.keys.judge:
		return true, nil
	case f.in.scanner.Inline():
		words := f.in.scanner.InlineArgs()
		f.endSearch(f.isRefused(words, len(words)) || f.isForMasters(words))
		return true, nil
	case !f.keys.judge && f.keys.rule.First():
		key, size, known := f.in.firstArg()
		if known {
			f.endSearch(f.table.LockKeys().Match(key) || size > maxFrame && f.table.LockKeys().MayMatch(key))
		}
		return known, nil
	}
	return f.seekAll(ctx)
}

// isForMasters reports whether a command is not just forwarded, by all its words.
func (f *forwarding) isForMasters(words [][]byte) bool {
	return f.table.Route(commands.Situation{}, words).Verb != commands.Forward
}

// endSearch ends the search.
func (f *forwarding) endSearch(lock bool) {
	f.keys.rule, f.keys.judge, f.keys.lock = nil, false, lock
	if !lock {
		f.passOn(f.count())
	}
}

// seekAll reads the whole command, as far as one may be held.
func (f *forwarding) seekAll(ctx context.Context) (decided bool, err error) {
	ev, err := f.in.eventUpTo(min(f.in.end, f.frame+maxFrame))
	held := f.in.buf[f.frame:f.in.scanned]
	switch {
	case err != nil:
		return false, err
	case ev == resp.FrameEnd:
		f.keys.whole = true
		words, _, _ := resp.Words(f.in.args[:0], held, math.MaxInt)
		f.in.args = words
		f.endSearch(f.isRefused(words, len(words)) || f.isForMasters(words))
		switch {
		case f.keys.lock:
		case f.isWhole():
			f.endFrame()
		default:
			f.split = atEnd
		}
		return true, nil
	case len(held) >= maxFrame:
		return true, f.seekAhead(ctx, held)
	}
	return false, nil
}

// seekAhead decides about a command that is too long to be held by its beginning.
// Where lock keys may stand further on, it is looked at as it is forwarded.
func (f *forwarding) seekAhead(ctx context.Context, held []byte) error {
	words, total, size := resp.Words(nil, held, math.MaxInt)
	if f.isRefused(words, total) {
		f.endSearch(true)
		return nil
	}
	places, locked, known := f.table.Ahead(ctx, words, total)
	f.endSearch(locked || !known)
	if f.keys.lock || places.Last() < len(words) {
		return nil
	}
	f.keys.ahead = &keyWalk{index: len(words), places: places, isLock: f.table.LockKeys().Match, mayBeLock: f.table.LockKeys().MayMatch}
	return f.keys.ahead.over(held[size:])
}

// event scans on, and looks at the keys of a frame that is forwarded before all of
// them are known.
func (f *forwarding) event() (resp.FrameEvent, error) {
	from := f.in.scanned
	ev, err := f.in.event()
	if f.keys.ahead != nil && err == nil {
		err = f.keys.ahead.over(f.in.buf[from:f.in.scanned])
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

// suspect marks the command whose name was just scanned, if it may take or release a lock
// on the upstream. It is looked at when it is whole, and is sent meanwhile.
func (f *forwarding) suspect() {
	name, _ := f.in.scanner.Name()
	if !f.in.scanner.Inline() {
		f.keys.suspect = uncovered.Suspect(name, f.in.scanner.Args())
		return
	}
	if words := f.in.scanner.InlineArgs(); uncovered.Suspect(name, len(words)) { // gone with the end of the frame
		f.table.Observe(words)
	}
}

// keepSent keeps the part of a suspect that is about to be sent.
func (f *forwarding) keepSent() {
	if !f.keys.suspect {
		return
	}
	part := f.in.buf[max(f.frame, f.in.start):f.in.scanned]
	if len(f.keys.sent)+len(part) > maxSuspect {
		f.keys.suspect, f.keys.sent = false, nil
		return
	}
	f.keys.sent = append(f.keys.sent, part...)
}

// sawWhole has a look at a suspect that has ended.
func (f *forwarding) sawWhole() {
	if !f.keys.suspect {
		return
	}
	frame := f.in.buf[max(f.frame, f.in.start):f.in.scanned]
	if len(f.keys.sent) > 0 {
		frame = append(f.keys.sent, frame...)
	}
	var words [uncovered.Words][]byte
	found, _, _ := resp.Words(words[:0], frame, len(words))
	f.table.Observe(found)
}
