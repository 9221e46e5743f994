package proxy

import (
	"errors"
	"math"
	"net"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/netconn"
)

const (
	// maxLookahead limits the bytes that are read while a command waits.
	maxLookahead = 64 << 10
	// maxFrame limits the size of a command that must be buffered whole.
	maxFrame = 1 << 20
	// maxExcerpt limits the bytes kept of a command that is discarded. No error shows more of a
	// command.
	maxExcerpt = 2 << 10
)

// errNotCRLF reports a frame that does not end in CRLF. Redis does not check that.
var errNotCRLF = &resp.RequestError{Text: "Protocol error: expected CRLF"}

// newInput returns an input that reads from conn.
func newInput(conn net.Conn, activity *netconn.Activity, inputBudget *budget, keptBytes func() int) *input {
	in := &input{budget: inputBudget, keptBytes: keptBytes, scanner: resp.NewFrameScanner(resp.DefaultRequestLimits())}
	in.conn = netconn.New(conn, in, activity)
	return in
}

// input reads a client's bytes and finds the frames in them. The unprocessed bytes begin at start,
// the scanned bytes end at scanEnd, and the bytes that were read end at readEnd. The current frame
// begins at frameStart, which is before start if a part of the frame was processed.
type input struct {
	conn        *netconn.Conn
	scanner     resp.FrameScanner
	buf         []byte
	start       int
	frameStart  int
	scanEnd     int
	readEnd     int
	args        [][]byte // reused for the words of a command
	budget      *budget
	bufReserved int // bytes of buf reserved in the budget
	// keptBytes returns the memory kept for the client between its commands. keptReserved is the
	// part of this memory that is reserved in the budget.
	keptBytes    func() int
	keptReserved int
}

// nextEvent scans the bytes read so far. It returns resp.FrameMore if more must be read.
func (in *input) nextEvent() (resp.FrameEvent, error) {
	return in.nextEventUpTo(in.readEnd)
}

// nextEventWithin scans at most limit bytes of the current frame.
func (in *input) nextEventWithin(limit int) (resp.FrameEvent, error) {
	return in.nextEventUpTo(min(in.readEnd, in.start+limit))
}

func (in *input) nextEventUpTo(end int) (resp.FrameEvent, error) {
	n, ev, err := in.scanner.Scan(in.buf[in.scanEnd:end])
	in.scanEnd += n
	return ev, err
}

// size returns the number of bytes that were scanned and not yet processed.
func (in *input) size() int { return in.scanEnd - in.start }

// chunk returns the bytes that were scanned and not yet processed.
func (in *input) chunk() []byte { return in.buf[in.start:in.scanEnd] }

// frameBytes returns the bytes of the current frame that were scanned and not yet processed.
func (in *input) frameBytes() []byte { return in.buf[max(in.frameStart, in.start):in.scanEnd] }

// skip drops the scanned bytes.
func (in *input) skip() { in.start, in.frameStart = in.scanEnd, in.scanEnd }

// words returns the words of the frame that has just ended. They are valid until the next read.
func (in *input) words() ([][]byte, error) {
	if in.scanner.IsInline() {
		return in.scanner.InlineArgs(), nil
	}
	if !resp.EndsInCRLF(in.chunk()) {
		return nil, errNotCRLF
	}
	in.args, _, _ = resp.Words(in.args[:0], in.chunk(), math.MaxInt)
	return in.args, nil
}

// maxKeptWords limits the capacity of args between frames.
const maxKeptWords = 64

// dropWords drops the words, which refer to the buffer.
func (in *input) dropWords() {
	if cap(in.args) > maxKeptWords {
		in.args = nil
		return
	}
	clear(in.args)
}

// fill makes room in the buffer, and reads once.
func (in *input) fill() error {
	if err := in.makeRoom(); err != nil {
		return err
	}
	return in.read()
}

func (in *input) read() error {
	n, err := in.conn.Read()
	in.readEnd += n
	if n > 0 {
		return nil // the next read returns the error again
	}
	return err
}

// Buffer implements netconn.Memory.
func (in *input) Buffer() []byte {
	if in.buf == nil {
		in.buf = netconn.GetBuffer()
	}
	return in.buf[in.readEnd:]
}

// Release implements netconn.Memory. It returns the buffer to the pool if the buffer is empty.
func (in *input) Release() {
	if in.readEnd == 0 {
		in.release()
	}
}

func (in *input) release() {
	netconn.PutBuffer(in.buf)
	in.dropBuffer()
}

// isIdle reports whether the buffer is empty, and the next byte begins a frame.
func (in *input) isIdle() bool {
	return in.readEnd == 0 && in.scanner.IsBetweenFrames()
}

// shrink frees memory that the next command allocates again.
func (in *input) shrink() {
	in.release()
	in.args = nil
	_ = in.updateBudget() // cannot fail, because it only releases memory
}

// makeRoom moves the unprocessed bytes to the front of the buffer. If these bytes fill the buffer,
// makeRoom doubles the buffer, or fails if the budget forbids that.
func (in *input) makeRoom() error {
	in.dropWords()
	if err := in.updateBudget(); err != nil {
		return err
	}
	unprocessed := in.buf[in.start:in.readEnd]
	switch {
	case len(unprocessed) == len(in.buf) && len(unprocessed) > 0:
		old := in.buf
		if err := in.enlarge(unprocessed); err != nil {
			return err
		}
		netconn.PutBuffer(old)
	case len(unprocessed) == 0 && len(in.buf) > netconn.BufferSize:
		in.dropBuffer()
	case in.start > 0:
		copy(in.buf, unprocessed)
	}
	in.scanEnd -= in.start
	in.frameStart -= in.start
	in.readEnd -= in.start
	in.start = 0
	return nil
}

// readAhead reads more bytes into the buffer. It does not move the existing bytes, because the
// running command's words refer to them. It returns errBufferFull if there is no room, or no budget
// for it.
func (in *input) readAhead() error {
	if in.readEnd == len(in.buf) && in.readEnd > 0 {
		// After enlarge, the words still refer to the old buffer.
		if in.readEnd >= maxLookahead || in.enlarge(in.buf) != nil {
			return errBufferFull
		}
	}
	return in.read()
}

// errBufferFull ends a lookahead if the buffer is full: the client has sent much ahead of its
// replies.
var errBufferFull = errors.New("the read buffer is full")

// enlarge replaces the buffer by a buffer of twice the size of content, if the budget permits. A
// client's first buffer is not budgeted.
func (in *input) enlarge(content []byte) error {
	size := 2 * len(content)
	if err := in.budget.reserve(size - in.bufReserved); err != nil {
		return err
	}
	in.bufReserved = size
	in.buf = append(make([]byte, 0, size), content...)[:size]
	return nil
}

// updateBudget reserves or releases memory for the change of keptBytes since its last call.
func (in *input) updateBudget() error {
	kept := in.keptBytes()
	if kept <= in.keptReserved {
		in.budget.release(in.keptReserved - kept)
	} else if err := in.budget.reserve(kept - in.keptReserved); err != nil {
		return err
	}
	in.keptReserved = kept
	return nil
}

// dropBuffer drops the buffer, and returns its bytes to the budget.
func (in *input) dropBuffer() {
	in.budget.release(in.bufReserved)
	in.buf, in.bufReserved = nil, 0
}

// close returns all bytes to the budget.
func (in *input) close() {
	in.release()
	in.budget.release(in.keptReserved)
	in.keptReserved = 0
}
