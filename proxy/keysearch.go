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

// keySearch looks for lock keys in an input's frames, if lock keys are configured. It also looks
// for commands that a user of the proxy may not send.
type keySearch struct {
	in          *input
	table       *commands.Table
	user        *login.Client
	hasLockKeys bool   // lock keys are configured
	search      search // of the current frame
}

// search is the state of the search in the current frame.
type search struct {
	rule        *keys.Rule // not nil while the frame's route depends on its keys
	checkRights bool       // whether the client may send the command must be checked
	held        bool       // there is a lock key, or the client may not send the command
	whole       bool       // the frame's end was scanned
	ahead       *keyWalk   // searches a frame that is forwarded before all its keys are known
	// suspect is set if the command may take or release a lock on the upstream. sent holds its
	// bytes that were sent.
	suspect bool
	sent    []byte
}

// searchResult is the result of a search.
type searchResult uint8

const (
	noDecision     searchResult = iota // nothing to decide, or decided before
	needsMore                          // more must be read
	forwardable                        // the frame is forwarded
	notForwardable                     // the frame is not simply forwarded
)

// start starts a search for the command whose name was just scanned. It reports whether the
// command's keys or permissions must be checked before it is forwarded.
func (k *keySearch) start() bool {
	k.search.checkRights = k.user.NeedsCheck()
	if !k.hasLockKeys {
		return k.search.checkRights
	}
	name, _ := k.in.scanner.Name() // a name that is too long to be kept is no known command
	k.search.rule = k.table.Keyed(name)
	return k.search.rule != nil || k.search.checkRights
}

// seek continues a search, as far as the command has been read. If the command has no lock keys, it
// is forwarded. If its first argument is its only key, that is decided when the argument has
// arrived. Nothing is sent before the decision, so that the upstream never gets the beginning of a
// command on a lock key.
func (k *keySearch) seek(ctx context.Context) (searchResult, error) {
	switch {
	case k.search.rule == nil && !k.search.checkRights:
		return noDecision, nil
	case k.in.scanner.Inline():
		return k.end(k.isHeld(k.in.scanner.InlineArgs())), nil
	case !k.search.checkRights && k.search.rule.First():
		key, size, known := k.in.firstArg()
		if !known {
			return needsMore, nil
		}
		return k.end(k.table.LockKeys().Match(key) || size > maxFrame && k.table.LockKeys().MayMatch(key)), nil
	}
	return k.seekAll(ctx)
}

// isHeld reports, from all words of a command, whether it must not simply be forwarded.
func (k *keySearch) isHeld(words [][]byte) bool {
	return k.isRefused(words, len(words)) || k.table.Route(commands.Situation{}, words).Verb != commands.Forward
}

// isRefused reports whether the client may not send a command to the upstream. words are the first
// of its total words.
func (k *keySearch) isRefused(words [][]byte, total int) bool {
	return k.search.checkRights && k.user.Refusal(words, total) != ""
}

// end ends the search. held is set if the frame must not simply be forwarded.
func (k *keySearch) end(held bool) searchResult {
	k.search.rule, k.search.checkRights, k.search.held = nil, false, held
	if held {
		return notForwardable
	}
	return forwardable
}

// seekAll searches the whole command, or the first maxFrame bytes of it.
func (k *keySearch) seekAll(ctx context.Context) (searchResult, error) {
	ev, err := k.in.eventUpTo(min(k.in.end, k.in.frame+maxFrame))
	frame := k.in.held()
	switch {
	case err != nil:
		return needsMore, err
	case ev == resp.FrameEnd:
		k.search.whole = true
		k.in.args, _, _ = resp.Words(k.in.args[:0], frame, math.MaxInt)
		return k.end(k.isHeld(k.in.args)), nil
	case len(frame) >= maxFrame:
		return k.seekAhead(ctx, frame)
	}
	return needsMore, nil
}

// seekAhead decides about a command that is too long to be held, by its beginning. If lock keys may
// follow, the rest is searched while it is forwarded.
func (k *keySearch) seekAhead(ctx context.Context, begin []byte) (searchResult, error) {
	words, total, size := resp.Words(nil, begin, math.MaxInt)
	if k.isRefused(words, total) {
		return k.end(true), nil
	}
	places, locked, known := k.table.Preview(ctx, words, total)
	if locked || !known || places.Last() < len(words) {
		return k.end(locked || !known), nil
	}
	globs := k.table.LockKeys()
	k.search.ahead = &keyWalk{index: len(words), places: places, isLock: globs.Match, mayBeLock: globs.MayMatch}
	return k.end(false), k.search.ahead.scan(begin[size:])
}

// event continues to scan, and searches a frame that is forwarded before all its keys are known.
func (k *keySearch) event() (resp.FrameEvent, error) {
	from := k.in.scanned
	ev, err := k.in.event()
	if k.search.ahead != nil && err == nil {
		err = k.search.ahead.scan(k.in.buf[from:k.in.scanned])
	}
	return ev, err
}

// longKeyBegin is the number of bytes that are matched of a key that is too long to be held.
const longKeyBegin = 1 << 10

// firstArg returns the first argument of the command whose name was just scanned, once it is whole,
// and its size. The argument is empty if there is none, or if it is not a bulk string. If it is too
// long to be held, firstArg returns its beginning.
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

// keyWalk finds the keys of a command while its bytes pass by.
type keyWalk struct {
	index  int // of the current argument
	places keys.Places
	isLock func(key []byte) bool
	// mayBeLock is isLock for a key that is too long to be held, by its beginning.
	mayBeLock func(begin []byte) bool

	header resp.HeaderWalk
	left   int    // bytes of the argument still to come, including the line end; 0: in its header
	key    []byte // the bytes so far of an argument that may be a lock key
}

// scan scans more bytes, which must be well-formed. It returns an error if they contain a lock key.
func (w *keyWalk) scan(p []byte) error {
	for len(p) > 0 {
		if w.left == 0 {
			n, size, whole := w.header.Scan(p)
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

// end checks whether the argument that has ended is a lock key.
func (w *keyWalk) end() error {
	index := w.index
	w.index++
	key := w.key[:max(0, len(w.key)-2)]
	if w.places.Has(index) && (w.isLock(key) || len(key) > maxFrame && w.mayBeLock(key[:longKeyBegin])) {
		return &resp.RequestError{Text: fmt.Sprintf(
			"command too long: it names lock key '%.128s' beyond its first %d bytes", key, maxFrame)}
	}
	return nil
}

// maxSuspect limits the bytes kept of a command that may take or release a lock and is sent in
// parts. A longer command does neither.
const maxSuspect = 8 << 10

// markSuspect marks the command whose name was just scanned, if it may take or release a lock on
// the upstream. The command is sent meanwhile, and inspected when it is whole.
func (k *keySearch) markSuspect() {
	name, _ := k.in.scanner.Name()
	if !k.in.scanner.Inline() {
		k.search.suspect = lockdetect.Suspect(name, k.in.scanner.Args())
		return
	}
	words := k.in.scanner.InlineArgs() // no longer available at the end of the frame
	if lockdetect.Suspect(name, len(words)) {
		k.table.Observe(words)
	}
}

// keepSent keeps a copy of the part of a suspect that is about to be sent.
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

// inspect passes a suspect that has ended to the table, which observes locks on the upstream.
func (k *keySearch) inspect() {
	if !k.search.suspect {
		return
	}
	frame := k.in.held()
	if len(k.search.sent) > 0 {
		frame = append(k.search.sent, frame...)
	}
	var words [lockdetect.MaxWords][]byte
	found, _, _ := resp.Words(words[:0], frame, len(words))
	k.table.Observe(found)
}
