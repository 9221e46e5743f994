package proxy

import (
	"errors"
	"math"
	"net"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/wire"
)

const (
	// maxAhead bounds what is read while a command waits.
	maxAhead = 64 << 10
	// maxFrame bounds a command that must be held whole.
	maxFrame = 1 << 20
	// maxExcerpt is how much is kept of a command that is thrown away: more than
	// any error shows of it.
	maxExcerpt = 2 << 10
)

// errNotCRLF is for other line ends, which Redis takes: it does not look at them.
var errNotCRLF = &resp.RequestError{Text: "Protocol error: expected CRLF"}

// newInput reads from a connection.
func newInput(conn net.Conn, activity *wire.Activity, held *budget, keeps func() int) *input {
	in := &input{budget: held, keeps: keeps, scanner: resp.NewFrameScanner(resp.DefaultRequestLimits())}
	in.wire = wire.New(conn, in, activity)
	return in
}

// input reads a client's bytes and finds the frames in them. Its buffer holds what is not dealt
// with yet, from start on; up to scanned it has been scanned; up to end there are bytes. The frame
// being read begins at frame: before start, if a part of it is dealt with.
type input struct {
	wire    *wire.Conn
	scanner resp.FrameScanner
	buf     []byte
	start   int
	frame   int
	scanned int
	end     int
	args    [][]byte // memory for the words of a command
	budget  *budget
	paid    int // of the budget
	// keeps reports how many bytes are kept for the client between its commands, of which kept were
	// taken from the budget.
	keeps func() int
	kept  int
}

// event scans what has been read. It returns resp.FrameMore when more must be read.
func (in *input) event() (resp.FrameEvent, error) {
	return in.eventUpTo(in.end)
}

// eventWithin scans no further than where the current frame would be over a limit.
func (in *input) eventWithin(limit int) (resp.FrameEvent, error) {
	return in.eventUpTo(min(in.end, in.start+limit))
}

func (in *input) eventUpTo(end int) (resp.FrameEvent, error) {
	n, ev, err := in.scanner.Scan(in.buf[in.scanned:end])
	in.scanned += n
	return ev, err
}

// size is how much has been scanned.
func (in *input) size() int { return in.scanned - in.start }

// chunk is what has been scanned.
func (in *input) chunk() []byte { return in.buf[in.start:in.scanned] }

// held is chunk of the current frame alone.
func (in *input) held() []byte { return in.buf[max(in.frame, in.start):in.scanned] }

// skip forgets what has been scanned.
func (in *input) skip() { in.start, in.frame = in.scanned, in.scanned }

// words are the words of the frame that has just ended, valid until more is read.
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

// manyWords are more than there is memory kept for.
const manyWords = 64

// forgetWords lets go of the buffer that the words stand in.
func (in *input) forgetWords() {
	if cap(in.args) > manyWords {
		in.args = nil
		return
	}
	clear(in.args)
}

// fill reads once.
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
		return nil // an error will come again
	}
	return err
}

// Room is the free part of the buffer.
func (in *input) Room() []byte {
	if in.buf == nil {
		in.buf = wire.Borrow()
	}
	return in.buf[in.end:]
}

// Rest gives the buffer up while nothing is held.
func (in *input) Rest() {
	if in.end == 0 {
		in.release()
	}
}

func (in *input) release() {
	wire.GiveBack(in.buf)
	in.letGo()
}

// atRest reports whether nothing is held, and the next byte begins a frame.
func (in *input) atRest() bool {
	return in.end == 0 && in.scanner.AtGap()
}

// shrink lets go of what can be made again.
func (in *input) shrink() {
	in.release()
	in.args = nil
	_ = in.account() // what was given back
}

// makeRoom moves what is held to the front of the buffer, and doubles a buffer
// that is full of it, if it may.
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
	case len(held) == 0 && len(in.buf) > wire.BufferSize:
		in.letGo()
	case in.start > 0:
		copy(in.buf, held)
	}
	in.scanned -= in.start
	in.frame -= in.start
	in.end -= in.start
	in.start = 0
	return nil
}

// lookahead reads once after what is held, and moves nothing: the words of the
// running command stay where they are. It returns errFull if there is no room.
func (in *input) lookahead() error {
	if in.end == len(in.buf) && in.end > 0 {
		if in.end >= maxAhead {
			return errFull
		}
		bigger := make([]byte, 2*len(in.buf))
		copy(bigger, in.buf)
		in.buf = bigger // the old one is in use
	}
	return in.read()
}

// errFull ends a lookahead: the client has sent much ahead of its replies.
var errFull = errors.New("the read buffer is full")

// enlarge doubles a buffer that is full of what is held, if all clients together may hold so much.
// The first buffer is nobody's.
func (in *input) enlarge(held []byte) error {
	size := 2 * len(held)
	if err := in.budget.take(size - in.paid); err != nil {
		return err
	}
	in.paid = size
	old := in.buf
	in.buf = append(make([]byte, 0, size), held...)[:size]
	wire.GiveBack(old)
	return nil
}

// account takes what is kept for the client between its commands from the budget.
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

// letGo gives a buffer up.
func (in *input) letGo() {
	in.budget.give(in.paid)
	in.buf, in.paid = nil, 0
}

// close gives back all that was taken from the budget.
func (in *input) close() {
	in.release()
	in.budget.give(in.kept)
	in.kept = 0
}
