package proxy

import (
	"errors"
	"math"
	"net"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/netconn"
)

const (
	// maxAhead limits the bytes that are read while a command waits.
	maxAhead = 64 << 10
	// maxFrame limits the bytes of a command that must be held whole.
	maxFrame = 1 << 20
	// maxExcerpt limits the bytes kept of a command that is discarded. No error shows more of a
	// command.
	maxExcerpt = 2 << 10
)

// errNotCRLF reports a frame that does not end in CRLF. Redis does not check that.
var errNotCRLF = &resp.RequestError{Text: "Protocol error: expected CRLF"}

// newInput returns an input that reads from conn.
func newInput(conn net.Conn, activity *netconn.Activity, held *budget, keeps func() int) *input {
	in := &input{budget: held, keeps: keeps, scanner: resp.NewFrameScanner(resp.DefaultRequestLimits())}
	in.wire = netconn.New(conn, in, activity)
	return in
}

// input reads a client's bytes and finds the frames in them. Bytes from start on are not yet
// processed, bytes before scanned have been scanned, and the bytes that were read end at end. The
// current frame begins at frame, which is before start if part of it was processed.
type input struct {
	wire     *netconn.Conn
	scanner  resp.FrameScanner
	buf      []byte
	start    int
	frame    int
	scanned  int
	end      int
	args     [][]byte // reused for the words of a command
	budget   *budget
	budgeted int // bytes of buf taken from the budget
	// keeps returns how many bytes are kept for the client between its commands. kept is how many
	// of them were taken from the budget.
	keeps func() int
	kept  int
}

// event scans the bytes read so far. It returns resp.FrameMore if more must be read.
func (in *input) event() (resp.FrameEvent, error) {
	return in.eventUpTo(in.end)
}

// eventWithin scans at most limit bytes of the current frame.
func (in *input) eventWithin(limit int) (resp.FrameEvent, error) {
	return in.eventUpTo(min(in.end, in.start+limit))
}

func (in *input) eventUpTo(end int) (resp.FrameEvent, error) {
	n, ev, err := in.scanner.Scan(in.buf[in.scanned:end])
	in.scanned += n
	return ev, err
}

// size returns how many unprocessed bytes were scanned.
func (in *input) size() int { return in.scanned - in.start }

// chunk returns the unprocessed bytes that were scanned.
func (in *input) chunk() []byte { return in.buf[in.start:in.scanned] }

// held is chunk for the current frame only.
func (in *input) held() []byte { return in.buf[max(in.frame, in.start):in.scanned] }

// skip drops the scanned bytes.
func (in *input) skip() { in.start, in.frame = in.scanned, in.scanned }

// words returns the words of the frame that has just ended. They are valid until the next read.
func (in *input) words() ([][]byte, error) {
	if in.scanner.Inline() {
		return in.scanner.InlineArgs(), nil
	}
	if !resp.EndsInCRLF(in.chunk()) {
		return nil, errNotCRLF
	}
	in.args, _, _ = resp.Words(in.args[:0], in.chunk(), math.MaxInt)
	return in.args, nil
}

// manyWords limits the capacity of args between frames.
const manyWords = 64

// forgetWords drops the words, which refer to the buffer.
func (in *input) forgetWords() {
	if cap(in.args) > manyWords {
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
	n, err := in.wire.Read()
	in.end += n
	if n > 0 {
		return nil // the next read returns the error again
	}
	return err
}

// Room implements netconn.Memory.
func (in *input) Room() []byte {
	if in.buf == nil {
		in.buf = netconn.Borrow()
	}
	return in.buf[in.end:]
}

// Release implements netconn.Memory. It gives the buffer back if it holds no bytes.
func (in *input) Release() {
	if in.end == 0 {
		in.release()
	}
}

func (in *input) release() {
	netconn.GiveBack(in.buf)
	in.dropBuffer()
}

// isIdle reports whether no bytes are held, and the next byte begins a frame.
func (in *input) isIdle() bool {
	return in.end == 0 && in.scanner.AtGap()
}

// shrink frees memory that can be allocated again.
func (in *input) shrink() {
	in.release()
	in.args = nil
	_ = in.account() // it only gives back to the budget
}

// makeRoom moves the held bytes to the front of the buffer. If they fill the buffer, it doubles the
// buffer, if the budget permits.
func (in *input) makeRoom() error {
	in.forgetWords()
	if err := in.account(); err != nil {
		return err
	}
	held := in.buf[in.start:in.end]
	switch {
	case len(held) == len(in.buf) && len(held) > 0:
		if err := in.enlarge(held); err != nil {
			return err
		}
	case len(held) == 0 && len(in.buf) > netconn.BufferSize:
		in.dropBuffer()
	case in.start > 0:
		copy(in.buf, held)
	}
	in.scanned -= in.start
	in.frame -= in.start
	in.end -= in.start
	in.start = 0
	return nil
}

// lookahead reads once behind the held bytes, without moving them: the running command's words
// refer to them. It returns errFull if there is no room.
func (in *input) lookahead() error {
	if in.end == len(in.buf) && in.end > 0 {
		if in.end >= maxAhead {
			return errFull
		}
		bigger := make([]byte, 2*len(in.buf))
		copy(bigger, in.buf)
		in.buf = bigger // the words refer to the old buffer
	}
	return in.read()
}

// errFull ends a lookahead if the buffer is full: the client has sent much ahead of its replies.
var errFull = errors.New("the read buffer is full")

// enlarge doubles a full buffer, if the budget permits. A client's first buffer is not budgeted.
func (in *input) enlarge(held []byte) error {
	size := 2 * len(held)
	if err := in.budget.take(size - in.budgeted); err != nil {
		return err
	}
	in.budgeted = size
	old := in.buf
	in.buf = append(make([]byte, 0, size), held...)[:size]
	netconn.GiveBack(old)
	return nil
}

// account updates the budget by the bytes that are kept for the client between its commands.
func (in *input) account() error {
	kept := in.keeps()
	if kept <= in.kept {
		in.budget.give(in.kept - kept)
	} else if err := in.budget.take(kept - in.kept); err != nil {
		return err
	}
	in.kept = kept
	return nil
}

// dropBuffer drops the buffer, and returns its bytes to the budget.
func (in *input) dropBuffer() {
	in.budget.give(in.budgeted)
	in.buf, in.budgeted = nil, 0
}

// close returns all bytes to the budget.
func (in *input) close() {
	in.release()
	in.budget.give(in.kept)
	in.kept = 0
}
