package proxy

import (
	"context"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/sharing"
	"redlock-proxy/proxy/track"
)

// lane is a way of a client's frames to the upstream: a connection of its own, or those that it shares with others (shares.go). Who sends knows no
// more of it than this. It belongs to the session's goroutine.
type lane interface {
	// fits judges a command by its name, which was just scanned, behind so many that are still to be sent.
	fits(frame *resp.FrameScanner, unsent int) fit
	// fitsInPart judges a frame of which so many bytes have come, and not its end.
	fitsInPart(size int) fit
	// fitsWhole judges a frame that has ended, or what is none.
	fitsWhole(frame []byte) fit
	// send sends frames, the last one maybe in part, and awaits so many replies that change nothing, and one that may. goesOn: they begin within a
	// frame, whose beginning was sent. It reports false where nothing was sent, because the connection has ended.
	send(ctx context.Context, frames []byte, plain int, also *track.Slot, goesOn bool) (sent bool, err error)
}

// fit is whether a frame goes by a lane.
type fit uint8

const (
	fits  fit = iota // as it comes
	later            // not before all that is owed has come; in part: not before its end has
	apart            // not at all, but over a connection of the client's own
)

// ownConn is a connection of the client's own, made when it is needed.
type ownConn struct{ *relay }

func (l ownConn) fits(frame *resp.FrameScanner, _ int) fit {
	if name, long := frame.Name(); l.shares.way != nil && (long || sharing.MayLeave(name)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.marked = true
	}
	return fits
}

func (ownConn) fitsInPart(int) fit   { return fits }
func (ownConn) fitsWhole([]byte) fit { return fits }

// send connects, if that is not done. The rest of a frame would be another command on a new connection.
func (l ownConn) send(ctx context.Context, frames []byte, plain int, also *track.Slot, goesOn bool) (sent bool, err error) {
	if goesOn && l.isGone() {
		return false, nil
	}
	dial := l.dial
	err = l.open(ctx)
	if goesOn && (l.dial != dial || l.isGone()) { // it ended just now
		return false, nil
	}
	if err != nil || !l.expect(plain, also) {
		return false, err
	}
	l.count(plain, also)
	l.relay.send(frames)
	return true, nil
}
