package resp

import "strconv"

// FrameEvent is the progress of a scan within a frame.
type FrameEvent uint8

const (
	// FrameMore means that the scanner has consumed all bytes, and a frame is incomplete or none
	// has begun.
	FrameMore FrameEvent = iota
	// FrameName means that the scanner has read the command's name, or at least its first 64 bytes.
	FrameName
	// FrameEnd means that the scanner has consumed the frame's last byte. In an inline command,
	// FrameName comes at this byte. The next scan, which may be of no bytes, then returns FrameEnd.
	FrameEnd
	// FrameEmpty means a complete frame without a command, to which Redis does not reply.
	FrameEmpty
)

// frameState is the part of a frame to which the next byte belongs.
type frameState uint8

const (
	betweenFrames frameState = iota // between frames
	inInline                        // in an inline command's line
	inArgsHeader                    // in "*3\r\n"
	inNameHeader                    // in argv[0]'s "$5\r\n"
	inName                          // in the part of argv[0] that the scanner stores
	inBulkHeader                    // in the "$5\r\n" of an argument after argv[0]
	inBulk                          // in a payload, or the two bytes after it
	inEnd                           // after an inline command, before its FrameEnd
	inError                         // the stream is unusable
)

// FrameScanner finds the requests in a client's byte stream, with the rules of Redis 7.0. The
// stream may come in pieces of any size. The scanner stores no payload, only the beginning of the
// command's name and the line of an inline command.
//
// Like Redis, the scanner checks neither the byte after the '\r' of a header line nor the two bytes
// after a payload. Redis finds a line's end before it checks the line's length, and may accept a
// line that is too long by less than one read. FrameScanner always refuses such a line.
type FrameScanner struct {
	limits    RequestLimits
	err       error          // cause of the state inError
	inline    *inlineCommand // the current inline command
	remaining uint64         // remaining bytes of the current bulk, including the two after it
	size      int64          // the size in the last bulk header
	head      frameHeader    // an incomplete header line
	args      int32          // number of remaining bulks, including the current one

	state      frameState
	isInline   bool
	isNameLong bool
	nameLen    uint8
	nameBuf    [64]byte
}

// NewFrameScanner returns a scanner at the beginning of a stream.
func NewFrameScanner(l RequestLimits) FrameScanner {
	return FrameScanner{limits: l.withDefaults()}
}

// SetLimits replaces the limits, such as after a client has logged in.
func (s *FrameScanner) SetLimits(l RequestLimits) { s.limits = l.withDefaults() }

// ApplyLimits replaces the limits, and applies them to the current frame, too. It returns a
// *RequestError if the frame breaks them.
func (s *FrameScanner) ApplyLimits(l RequestLimits) error {
	s.SetLimits(l)
	if s.state < inName || s.state > inBulk {
		return nil
	}
	switch {
	case int(s.args) > s.limits.MaxArgs:
		s.err = s.limits.argsError(int64(s.args))
	case s.state != inBulkHeader && s.size > s.limits.MaxBulk:
		s.err = s.limits.bulkError(s.size)
	default:
		return nil
	}
	s.state = inError
	return s.err
}

// Name returns the command's name after FrameName. long reports whether the name is longer than the
// returned 64 bytes. The bytes are valid until the next frame begins.
func (s *FrameScanner) Name() (name []byte, long bool) {
	return s.nameBuf[:s.nameLen], s.isNameLong
}

// IsBetweenFrames reports whether the next byte begins a frame.
func (s *FrameScanner) IsBetweenFrames() bool { return s.state == betweenFrames }

// Args returns the number of remaining arguments of an array, including the current one.
func (s *FrameScanner) Args() int { return int(s.args) }

// PeekBulk reads the header of the next argument, at the beginning of p, without consuming it. It
// returns the argument's size, or -1 if the scanner will refuse it, and the length of the header.
// complete is false if p ends within the header.
func (s *FrameScanner) PeekBulk(p []byte) (size int64, n int, complete bool) {
	var h frameHeader
	var err error
	size, n = h.readWhole(p)
	ok := n > 0
	if complete = ok; !complete {
		n, complete, err = h.read(p, s.limits.MaxInline, errLongBulkHeader)
		size, ok = h.number()
	}
	if err != nil || complete && (!ok || size < 0 || size > s.limits.MaxBulk) {
		return -1, n, true
	}
	return size, n, complete
}

// Scan consumes bytes up to the next event and returns their number. Call it again with the
// remaining bytes, even if there are none, until it returns FrameMore. An error is a *RequestError,
// errCrossProtocol or ErrTLS; every further scan returns the same error.
func (s *FrameScanner) Scan(p []byte) (n int, ev FrameEvent, err error) {
	for n < len(p) && s.state < inEnd && ev == FrameMore && err == nil {
		var m int
		switch s.state {
		case betweenFrames:
			err = s.begin(p[n])
		case inInline:
			m, ev, err = s.scanInline(p[n:])
		case inArgsHeader:
			m, ev, err = s.scanArgsHeader(p[n:])
		case inNameHeader:
			m, err = s.scanBulkHeader(p[n:])
		case inName:
			m, ev = s.scanName(p[n:])
		case inBulkHeader:
			m, ev, err = s.scanBulks(p[n:])
		case inBulk:
			m, ev = s.scanBulk(p[n:])
		}
		n += m
	}
	if ev == FrameName && speaksHTTP(s.nameBuf[:s.nameLen]) {
		ev, err = FrameMore, errCrossProtocol
	}
	switch {
	case err != nil:
		s.state, s.err = inError, err
	case s.state == inError:
		err = s.err
	case s.state == inEnd && ev == FrameMore:
		ev = s.end()
	case s.state == betweenFrames && ev == FrameMore:
		s.inline = nil
	}
	return n, ev, err
}

// begin chooses the kind of a frame by its first byte.
func (s *FrameScanner) begin(first byte) error {
	s.nameLen, s.isNameLong, s.isInline = 0, false, first != '*'
	switch {
	case first == tlsHandshake:
		return ErrTLS
	case s.isInline:
		s.state, s.inline = inInline, new(inlineCommand)
	default:
		s.state, s.inline = inArgsHeader, nil
	}
	return nil
}

func (s *FrameScanner) end() FrameEvent {
	s.state = betweenFrames
	return FrameEnd
}

// scanArgsHeader consumes "*3\r\n" or a part of it.
func (s *FrameScanner) scanArgsHeader(p []byte) (n int, ev FrameEvent, err error) {
	count, n := s.head.readWhole(p)
	if n == 0 {
		var complete, ok bool
		if n, complete, err = s.head.read(p, s.limits.MaxInline, errLongArgsHeader); !complete {
			return n, FrameMore, err
		}
		if count, ok = s.head.number(); !ok {
			return n, FrameMore, errArgs
		}
		s.head = frameHeader{}
	}
	ev, err = s.beginArgs(count)
	return n, ev, err
}

// beginArgs begins an array of count bulks.
func (s *FrameScanner) beginArgs(count int64) (FrameEvent, error) {
	if count > int64(s.limits.MaxArgs) {
		return FrameMore, s.limits.argsError(count)
	}
	if count <= 0 {
		s.state = betweenFrames
		return FrameEmpty, nil
	}
	s.args, s.state = int32(count), inNameHeader
	return FrameMore, nil
}

// scanBulkHeader consumes "$5\r\n" or a part of it.
func (s *FrameScanner) scanBulkHeader(p []byte) (n int, err error) {
	size, n := s.head.readWhole(p)
	if n == 0 || p[0] != '$' {
		var complete, ok bool
		if n, complete, err = s.head.read(p, s.limits.MaxInline, errLongBulkHeader); !complete {
			return n, err
		}
		if first := s.head.firstByte(); first != '$' {
			return n, errExpectedBulk(first)
		}
		if size, ok = s.head.number(); !ok || size < 0 {
			return n, errBulk
		}
		s.head = frameHeader{}
	}
	if size > s.limits.MaxBulk {
		return n, s.limits.bulkError(size)
	}
	s.remaining, s.size = uint64(size)+2, size
	s.state++ // from inNameHeader to inName, or from inBulkHeader to inBulk
	return n, nil
}

// scanName consumes the part of the command's name that the scanner stores.
func (s *FrameScanner) scanName(p []byte) (n int, ev FrameEvent) {
	n = s.keepName(p[:min(uint64(len(p)), s.remaining-2)])
	if s.remaining -= uint64(n); s.remaining > 2 && int(s.nameLen) < len(s.nameBuf) {
		return n, FrameMore
	}
	s.isNameLong = s.remaining > 2
	s.state = inBulk
	return n, FrameName
}

// keepName stores a part of the name, and returns the number of bytes that fit.
func (s *FrameScanner) keepName(part []byte) int {
	n := copy(s.nameBuf[s.nameLen:], part)
	s.nameLen += uint8(n)
	return n
}

// scanBulks consumes the complete arguments in p, and the header of the argument after them.
func (s *FrameScanner) scanBulks(p []byte) (n int, ev FrameEvent, err error) {
	for {
		size, h := s.head.readWhole(p[n:])
		if h == 0 || p[n] != '$' || size > s.limits.MaxBulk || size > int64(len(p)-n-h-2) {
			break
		}
		n += h + int(size) + 2
		if s.args--; s.args == 0 {
			return n, s.end(), nil
		}
	}
	h, err := s.scanBulkHeader(p[n:])
	return n + h, FrameMore, err
}

// scanBulk consumes an argument's payload and the two bytes after it.
func (s *FrameScanner) scanBulk(p []byte) (n int, ev FrameEvent) {
	if s.remaining > uint64(len(p)) {
		s.remaining -= uint64(len(p))
		return len(p), FrameMore
	}
	s.state = inBulkHeader
	if s.args--; s.args == 0 {
		ev = s.end()
	}
	return int(s.remaining), ev
}

// frameHeader reads a header line, "*3\r\n" or "$5\r\n", which may come in pieces.
type frameHeader struct {
	length  int      // of the line so far, in bytes, without its end
	start   [22]byte // beginning of the line: room for "*-9223372036854775808", and one byte more
	sawZero bool     // the line contains a zero byte; Redis finds no line end after it
	sawCR   bool     // the '\r' was read
}

// readWhole reads a complete, ordinary header line at the beginning of p. It returns the number and
// the length of the line. If it returns the length 0, the caller must use read instead.
func (h *frameHeader) readWhole(p []byte) (number int64, n int) {
	if len(p) < 4 || h.length > 0 || h.sawCR {
		return 0, 0
	}
	number = int64(p[1] - '0')
	for n = 2; n < len(p)-1 && n < 12 && p[n] != '\r'; n++ {
		if number == 0 || p[n]-'0' > 9 {
			return 0, 0
		}
		number = number*10 + int64(p[n]-'0')
	}
	if n >= len(p)-1 || p[n] != '\r' || p[1]-'0' > 9 {
		return 0, 0
	}
	return number, n + 2
}

// read consumes a part of the line and reports whether the line is complete. At the first byte
// beyond the limit it returns the error tooLong.
func (h *frameHeader) read(p []byte, limit int, tooLong error) (n int, complete bool, err error) {
	for n < len(p) && !complete && h.length <= limit {
		c := p[n]
		n++
		switch {
		case h.sawCR:
			complete = true
		case c == '\r' && !h.sawZero:
			h.sawCR = true
		default:
			h.add(c)
		}
	}
	if h.length > limit {
		err = tooLong
	}
	return n, complete, err
}

func (h *frameHeader) add(c byte) {
	if h.length < len(h.start) {
		h.start[h.length] = c
	}
	h.length++
	h.sawZero = h.sawZero || c == 0
}

// firstByte returns the line's first byte, which is '\r' if the line is empty.
func (h *frameHeader) firstByte() byte {
	if h.length == 0 {
		return '\r'
	}
	return h.start[0]
}

// number returns the number in a complete line. It must be in Redis' form: "+1", "01" and "-0" are
// invalid.
func (h *frameHeader) number() (number int64, ok bool) {
	digits := string(h.start[min(h.length, 1):min(h.length, len(h.start))])
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, err == nil && digits == strconv.FormatInt(number, 10)
}
