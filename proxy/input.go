package proxy

import (
	"errors"
	"net"

	"github.com/tidwall/redcon"
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

// errNotCRLF is for line ends that Redis takes and redcon does not.
var errNotCRLF = &ProtocolError{"Protocol error: expected CRLF"}

// newInput reads from a connection.
func newInput(conn net.Conn, stir *stir) *input {
	in := &input{scanner: newFrameScanner(DefaultLimits())}
	in.wire = newWire(conn, in, stir)
	return in
}

// input reads a client's bytes and finds the frames in them. Its buffer holds
// the frame being read, from start on; up to scanned it has been scanned; up to
// end there are bytes.
type input struct {
	wire    *wire
	scanner frameScanner
	buf     []byte
	start   int
	scanned int
	end     int
	args    [][]byte // memory for the words of a command
}

// event scans what has been read. It returns frameMore when more must be read.
func (in *input) event() (frameEvent, error) {
	return in.eventUpTo(in.end)
}

// eventWithin scans no further than where the current frame would be over a limit.
func (in *input) eventWithin(limit int) (frameEvent, error) {
	return in.eventUpTo(min(in.end, in.start+limit))
}

func (in *input) eventUpTo(end int) (frameEvent, error) {
	n, ev, err := in.scanner.scan(in.buf[in.scanned:end])
	in.scanned += n
	return ev, err
}

// size is how much of the current frame has been scanned.
func (in *input) size() int { return in.scanned - in.start }

// chunk is what has been scanned of the current frame.
func (in *input) chunk() []byte { return in.buf[in.start:in.scanned] }

// skip forgets what has been scanned.
func (in *input) skip() { in.start = in.scanned }

// words are the words of the frame that has just ended, valid until more is read.
func (in *input) words() ([][]byte, error) {
	if in.scanner.inline() {
		return in.scanner.inlineArgs(), nil
	}
	complete, args, _, _, err := redcon.ReadNextCommand(in.chunk(), in.args[:0])
	if err != nil || !complete {
		return nil, errNotCRLF
	}
	in.args = args
	return args, nil
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
	in.makeRoom()
	return in.read()
}

func (in *input) read() error {
	n, err := in.wire.read()
	in.end += n
	if n > 0 {
		return nil // an error will come again
	}
	return err
}

// room is the free part of the buffer.
func (in *input) room() []byte {
	if in.buf == nil {
		in.buf = borrow()
	}
	return in.buf[in.end:]
}

// rest gives the buffer up while nothing is held.
func (in *input) rest() {
	if in.end == 0 {
		in.release()
	}
}

func (in *input) release() {
	giveBack(in.buf)
	in.buf = nil
}

// atRest reports whether nothing is held, and the next byte begins a frame.
func (in *input) atRest() bool {
	return in.end == 0 && in.scanner.state == inGap
}

// shrink lets go of what can be made again.
func (in *input) shrink() {
	in.release()
	in.args = nil
	in.wire.forget()
}

// makeRoom moves what is held to the front of the buffer, and doubles a buffer
// that is full of it.
func (in *input) makeRoom() {
	in.forgetWords()
	held := in.buf[in.start:in.end]
	switch {
	case len(held) == len(in.buf) && len(held) > 0:
		old := in.buf
		in.buf = append(make([]byte, 0, 2*len(held)), held...)[:2*len(held)]
		giveBack(old)
	case len(held) == 0 && len(in.buf) > bufferSize:
		in.buf = nil
	case in.start > 0:
		copy(in.buf, held)
	}
	in.scanned -= in.start
	in.end -= in.start
	in.start = 0
}

// lookahead reads once behind what is held, and moves nothing: the words of the
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
