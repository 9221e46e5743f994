package proxy

import (
	"fmt"

	"redlock-proxy/commands"
)

// keySearch is how much is known of the current frame's keys. They are looked for
// only where lock keys are configured.
type keySearch struct {
	rule  *commands.KeyRule // not nil: they decide where the frame goes, and have not yet
	lock  bool              // there is a lock key
	whole bool              // the frame's end was scanned
	ahead *keyWalk          // of a frame that is forwarded before all its keys are known
}

// keyed reports whether the keys of the command whose name was just scanned must be
// looked at before it is forwarded.
func (f *forwarding) keyed() bool {
	if !f.routes {
		return false
	}
	name, long := f.in.scanner.name()
	if !long {
		f.keys.rule = f.table.Keyed(name)
	}
	return f.keys.rule != nil
}

// seek looks for the keys of such a command, as far as it has been read. Where there
// is no lock key the frame is forwarded: as soon as the first argument is there, if
// that is the only key. Nothing is decided before, so that no beginning of a command
// on a lock key is ever sent.
func (f *forwarding) seek() (decided bool, err error) {
	switch {
	case f.keys.rule == nil:
		return true, nil
	case f.in.scanner.inline():
		f.settleKeys(f.table.LockCommand(f.in.scanner.inlineArgs()) != nil)
		return true, nil
	case f.keys.rule.First():
		key, whole := f.in.firstArg()
		if whole {
			f.settleKeys(f.table.IsLockKey(key))
		}
		return whole, nil
	}
	return f.seekAll()
}

// settleKeys ends the search.
func (f *forwarding) settleKeys(lock bool) {
	f.keys.rule, f.keys.lock = nil, lock
	if !lock {
		f.passOn(f.count())
	}
}

// seekAll reads the whole command, as far as one may be held.
func (f *forwarding) seekAll() (decided bool, err error) {
	ev, err := f.in.eventUpTo(min(f.in.end, f.frame+maxFrame))
	held := f.in.buf[f.frame:f.in.scanned]
	switch {
	case err != nil:
		return false, err
	case ev == frameEnd:
		f.keys.whole = true
		words, _, _ := wholeWords(f.in.args[:0], held)
		f.in.args = words
		f.settleKeys(f.table.LockCommand(words) != nil)
		if !f.keys.lock {
			f.endFrame()
		}
		return true, nil
	case len(held) >= maxFrame:
		return true, f.seekAhead(held)
	}
	return false, nil
}

// seekAhead decides about a command that is too long to be held by its beginning.
// Where lock keys may stand further on, it is looked at as it is forwarded.
func (f *forwarding) seekAhead(held []byte) error {
	words, total, size := wholeWords(nil, held)
	places, locked, known := f.table.Ahead(words, total)
	f.settleKeys(locked || !known)
	if f.keys.lock || places.Last() < len(words) {
		return nil
	}
	f.keys.ahead = &keyWalk{index: len(words), places: places, isLock: f.table.IsLockKey}
	return f.keys.ahead.over(held[size:])
}

// event scans on, and looks at the keys of a frame that is forwarded before all of
// them are known.
func (f *forwarding) event() (frameEvent, error) {
	from := f.in.scanned
	ev, err := f.in.event()
	if f.keys.ahead != nil && err == nil {
		err = f.keys.ahead.over(f.in.buf[from:f.in.scanned])
	}
	return ev, err
}

// firstArg is the first argument of the command whose name was just scanned, once it
// is whole. Without one, or where it is no bulk, or too long to be a lock key, it is
// empty.
func (in *input) firstArg() (arg []byte, whole bool) {
	p := in.buf[in.scanned:in.end]
	switch {
	case in.scanner.args < 2:
		return nil, true
	case len(p) < 2:
		return nil, false
	}
	p = p[2:] // the line end behind the name
	size, n, whole := in.bulkHeader(p)
	switch p = p[n:]; {
	case !whole:
		return nil, false
	case size < 0 || size > maxFrame:
		return nil, true
	case int64(len(p)) < size:
		return nil, false
	}
	return p[:size], true
}

// bulkHeader reads a line such as "$5\r\n": its number, or -1 where it has none, and
// its length.
func (in *input) bulkHeader(p []byte) (size int64, n int, whole bool) {
	var h frameHeader
	if size, n = h.short(p); n > 0 {
		return size, n, true
	}
	n, whole, err := h.read(p, in.scanner.limits.MaxInline, errLongBulkHeader)
	size, ok := h.number()
	if err != nil || whole && !ok {
		return -1, n, true
	}
	return size, n, whole
}

// wholeWords are the words of a frame that are whole in its beginning, how many the
// frame has, and how many bytes are behind them. What there is of it is well-formed.
func wholeWords(words [][]byte, frame []byte) (all [][]byte, total, size int) {
	total, rest := headerNumber(frame)
	for len(words) < total {
		n, payload := headerNumber(rest)
		if payload == nil || len(payload) < n+2 {
			break
		}
		words = append(words, payload[:n])
		rest = payload[n+2:]
	}
	return words, total, len(frame) - len(rest)
}

// keyWalk goes through the arguments of a command as its bytes pass by.
type keyWalk struct {
	index  int // of the current argument
	places commands.KeyPlaces
	isLock func(key []byte) bool

	header headerWalk
	left   int    // bytes of its payload to come, the line end included; 0: in its header
	key    []byte // what has passed of one that may be a lock key
}

// over goes over more bytes, which are well-formed. The error names a lock key.
func (w *keyWalk) over(p []byte) error {
	for len(p) > 0 {
		if w.left == 0 {
			n, size, whole := w.header.over(p)
			p = p[n:]
			if !whole {
				return nil
			}
			w.left, w.key = size+2, w.key[:0]
		}
		part := p[:min(w.left, len(p))]
		p = p[len(part):]
		if w.left -= len(part); w.places.Has(w.index) && len(w.key) <= maxFrame {
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

// end is the end of an argument, and of what stands behind it.
func (w *keyWalk) end() error {
	index := w.index
	w.index++
	if key := w.key[:max(0, len(w.key)-2)]; w.places.Has(index) && len(key) <= maxFrame && w.isLock(key) {
		return &ProtocolError{fmt.Sprintf("command too long: it names lock key '%.128s' beyond its first %d bytes", key, maxFrame)}
	}
	return nil
}

// headerWalk goes through a line such as "$5\r\n".
type headerWalk struct {
	size int
	cr   bool
}

// over takes bytes up to the end of the line, which tells the size.
func (h *headerWalk) over(p []byte) (n, size int, whole bool) {
	for _, c := range p {
		n++
		switch {
		case h.cr:
			size = h.size
			*h = headerWalk{}
			return n, size, true
		case c == '\r':
			h.cr = true
		case c != '$':
			h.size = h.size*10 + int(c-'0')
		}
	}
	return n, 0, false
}
