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

// search holds the state of the search in the current frame.
type search struct {
	rule        *keys.Rule // not nil while the frame's route depends on its keys
	checkRights bool       // the client's permission to send the command must be checked
	blocked     bool       // the command has a lock key, or the client may not send it
	whole       bool       // the frame's end was scanned
	walk        *keyWalk   // searches a frame that is forwarded before all its keys are read
	// lockCandidate is set if the command may take or release a lock on the upstream. sentBytes
	// holds the part of a lock candidate that was sent.
	lockCandidate bool
	sentBytes     []byte
}

// searchResult says whether the current frame can be forwarded.
type searchResult uint8

const (
	noDecision     searchResult = iota // no decision is needed, or the decision was made before
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
	k.search.rule = k.table.KeyRule(name)
	return k.search.rule != nil || k.search.checkRights
}

// seek continues a search, as far as the command has been read. If the command has no lock keys, it
// is forwarded. If the first argument is the only key, seek decides when that argument has arrived.
// Nothing is sent before the decision: the upstream must never get the beginning of a command on a
// lock key.
func (k *keySearch) seek(ctx context.Context) (searchResult, error) {
	switch {
	case k.search.rule == nil && !k.search.checkRights:
		return noDecision, nil
	case k.in.scanner.IsInline():
		return k.finish(k.isBlocked(k.in.scanner.InlineArgs())), nil
	case !k.search.checkRights && k.search.rule.IsFirstOnly():
		key, size, known := k.in.firstArg()
		if !known {
			return needsMore, nil
		}
		return k.finish(k.table.LockKeys().Match(key) || size > maxFrame && k.table.LockKeys().MayMatch(key)), nil
	}
	return k.seekAll(ctx)
}

// isBlocked reports, from all words of a command, whether it must not simply be forwarded.
func (k *keySearch) isBlocked(words [][]byte) bool {
	return k.isRefused(words, len(words)) || k.table.Route(commands.Situation{}, words).Action != commands.Forward
}

// isRefused reports whether the client may not send a command to the upstream. words holds the
// first words of the command, and total is the number of all its words.
func (k *keySearch) isRefused(words [][]byte, total int) bool {
	return k.search.checkRights && k.user.Refusal(words, total) != ""
}

// finish ends the search. blocked is set if the frame must not simply be forwarded.
func (k *keySearch) finish(blocked bool) searchResult {
	k.search.rule, k.search.checkRights, k.search.blocked = nil, false, blocked
	if blocked {
		return notForwardable
	}
	return forwardable
}

// seekAll searches the whole command, or the first maxFrame bytes of it.
func (k *keySearch) seekAll(ctx context.Context) (searchResult, error) {
	ev, err := k.in.nextEventUpTo(min(k.in.readEnd, k.in.frameStart+maxFrame))
	frame := k.in.frameBytes()
	switch {
	case err != nil:
		return needsMore, err
	case ev == resp.FrameEnd:
		k.search.whole = true
		k.in.args, _, _ = resp.Words(k.in.args[:0], frame, math.MaxInt)
		return k.finish(k.isBlocked(k.in.args)), nil
	case len(frame) >= maxFrame:
		return k.seekPrefix(ctx, frame)
	}
	return needsMore, nil
}

// seekPrefix decides from the first bytes of a command that is too long to buffer. If lock keys may
// follow, the rest is searched while it is forwarded.
func (k *keySearch) seekPrefix(ctx context.Context, prefix []byte) (searchResult, error) {
	words, total, size := resp.Words(nil, prefix, math.MaxInt)
	if len(words) == 0 || k.isRefused(words, total) { // handleTooLong refuses such a long name
		return k.finish(true), nil
	}
	positions, locked, known := k.table.Preview(ctx, words, total)
	if locked || !known || positions.Last() < len(words) {
		return k.finish(locked || !known), nil
	}
	lockKeys := k.table.LockKeys()
	k.search.walk = &keyWalk{index: len(words), positions: positions, isLock: lockKeys.Match, mayBeLock: lockKeys.MayMatch}
	return k.finish(false), k.search.walk.scan(prefix[size:])
}

// nextEvent continues to scan, and searches a frame that is forwarded before all its keys are
// known.
func (k *keySearch) nextEvent() (resp.FrameEvent, error) {
	from := k.in.scanEnd
	ev, err := k.in.nextEvent()
	if k.search.walk != nil && err == nil {
		err = k.search.walk.scan(k.in.buf[from:k.in.scanEnd])
	}
	return ev, err
}

// longKeyPrefix is the length in bytes of the prefix by which a key too long to buffer is matched.
const longKeyPrefix = 1 << 10

// firstArg returns the first argument of the command whose name was just scanned, and the
// argument's size. known is false until the whole argument has arrived. The argument is empty if
// there is none, or if it is not a bulk string. If the argument is too long to buffer, firstArg
// returns its beginning.
func (in *input) firstArg() (arg []byte, size int64, known bool) {
	p := in.buf[in.scanEnd:in.readEnd]
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
		length = longKeyPrefix
	}
	if p = p[n:]; int64(len(p)) < length {
		return nil, size, false
	}
	return p[:length], size, true
}

// keyWalk finds the keys of a command while the command is forwarded.
type keyWalk struct {
	index     int // of the current argument
	positions keys.Places
	isLock    func(key []byte) bool
	// mayBeLock reports, by the prefix of a key too long to buffer, whether it may be a lock key.
	mayBeLock func(prefix []byte) bool

	header    resp.HeaderScanner
	remaining int    // bytes of the argument to come, with the line end; 0 in a header
	key       []byte // the scanned bytes of an argument that may be a lock key
}

// scan scans more bytes, which must be well-formed. It returns an error if they contain a lock key.
func (w *keyWalk) scan(p []byte) error {
	for len(p) > 0 {
		if w.remaining == 0 {
			n, size, whole := w.header.Scan(p)
			p = p[n:]
			if !whole {
				return nil
			}
			w.remaining, w.key = size+2, w.key[:0]
		}
		part := p[:min(w.remaining, len(p))]
		p = p[len(part):]
		if w.remaining -= len(part); w.positions.Has(w.index) && len(w.key) < longKeyPrefix+maxFrame {
			w.key = append(w.key, part...)
		}
		if w.remaining == 0 {
			if err := w.checkArg(); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkArg checks whether the argument that has ended is a lock key.
func (w *keyWalk) checkArg() error {
	index := w.index
	w.index++
	key := w.key[:max(0, len(w.key)-2)]
	if w.positions.Has(index) && (w.isLock(key) || len(key) > maxFrame && w.mayBeLock(key[:longKeyPrefix])) {
		return &resp.RequestError{Text: fmt.Sprintf(
			"command too long: it names lock key '%.128s' beyond its first %d bytes", key, maxFrame)}
	}
	return nil
}

// maxCandidateBytes limits the bytes kept of a command that may take or release a lock and is sent
// in parts. The proxy does not inspect a longer command.
const maxCandidateBytes = 8 << 10

// markLockCandidate marks the command whose name was just scanned, if it may take or release a lock
// on the upstream. The command is inspected when it is whole, which may be after it was sent.
func (k *keySearch) markLockCandidate() {
	name, _ := k.in.scanner.Name()
	if !k.in.scanner.IsInline() {
		k.search.lockCandidate = lockdetect.IsCandidate(name, k.in.scanner.Args())
		return
	}
	words := k.in.scanner.InlineArgs() // the scanner drops these words at the end of the frame
	if lockdetect.IsCandidate(name, len(words)) {
		k.table.Observe(words)
	}
}

// keepSentPart keeps a copy of the part of a lock candidate that is about to be sent.
func (k *keySearch) keepSentPart() {
	if !k.search.lockCandidate {
		return
	}
	part := k.in.frameBytes()
	if len(k.search.sentBytes)+len(part) > maxCandidateBytes {
		k.search.lockCandidate, k.search.sentBytes = false, nil
		return
	}
	k.search.sentBytes = append(k.search.sentBytes, part...)
}

// inspect passes a whole lock candidate to the table, which counts locks on the upstream.
func (k *keySearch) inspect() {
	if !k.search.lockCandidate {
		return
	}
	frame := k.in.frameBytes()
	if len(k.search.sentBytes) > 0 {
		frame = append(k.search.sentBytes, frame...)
	}
	var words [lockdetect.MaxWords][]byte
	parsed, _, _ := resp.Words(words[:0], frame, len(words))
	k.table.Observe(parsed)
}
