package proxy

import (
	"context"
	"errors"

	"redlock-proxy/proxy/sharing"
	"redlock-proxy/proxy/upstream"
)

// rejoinPool is rejoin for a client that has said who it is and how it speaks, and goes on with what may be shared.
func (f *forwarding) rejoinPool(ctx context.Context) {
	s := &f.relay.shares
	if !s.apart || !s.opening || f.plain > 0 || f.slot != nil || f.begun || f.in.start < f.frame {
		return
	}
	if name, long := f.in.scanner.Name(); long || !sharing.May(name) || !f.relay.up.LetsIn() {
		return
	}
	if f.relay.rejoin(ctx); !s.apart {
		s.returns++
	}
}

// part has what follows go over a connection of the client's own.
func (f *forwarding) part(ctx context.Context) error {
	if f.relay.shares.lane == nil || f.relay.shares.apart {
		return nil
	}
	if f.relay.isOwed() {
		if err := f.attend(ctx, f.relay.collect); err != nil {
			return err
		}
	}
	f.relay.setApart()
	return f.relay.isOver()
}

// split is where in the current frame it turned out that it is not to be shared.
type split uint8

const (
	together  split = iota
	atName          // the name was scanned
	within          // a part of it was
	atEnd           // all of it was
	atNothing       // it is no command
	atWindow        // it is shared, but not before what is owed has come
)

// mustPart is that of the relay, for the command whose name was just scanned.
func (f *forwarding) mustPart() bool {
	switch name, long := f.in.scanner.Name(); {
	case f.relay.shared():
		return long || f.in.scanner.Inline() || f.relay.mustPart(name, f.plain)
	case f.relay.shares.lane != nil && (long || sharing.MayLeave(name)):
		f.relay.mark()
	}
	return false
}

// apartFrom has the current frame go over a connection of the client's own, and what stands before it over one that is shared.
func (f *forwarding) apartFrom(ctx context.Context) error {
	at := f.split
	f.special, f.split = false, together
	if at == atWindow {
		if err := f.passWhole(ctx); err != nil {
			return err
		}
		return f.attend(ctx, f.relay.collect)
	}
	f.relay.shares.opening = false
	err := f.passWhole(ctx)
	if err == nil {
		err = f.part(ctx)
	}
	if err != nil {
		return err
	}
	switch name, _ := f.in.scanner.Name(); at {
	case atName:
		switch _, long := f.in.scanner.Name(); {
		case long || sharing.MayLeave(name):
			f.relay.mark()
		case sharing.Waits(name):
			return f.remind(ctx)
		}
	case atEnd:
		f.endFrame()
	case atNothing:
		f.frame = f.in.scanned
	}
	return nil
}

// remind has the upstream take what the client has written so far for written before the next command: WAIT asks of its own
// connection's last command how far replicas must be, and on a new one there was none.
func (f *forwarding) remind(ctx context.Context) error {
	_, err := f.ask(ctx, []byte("*1\r\n$4\r\nPING\r\n"))
	var down *upstream.Error
	if errors.As(err, &down) {
		return nil // as the command will find
	}
	return err
}

// passWhole sends what stands before the current frame, and nothing of that.
func (f *forwarding) passWhole(ctx context.Context) error {
	passing, counted := f.passing, f.counted
	if !passing {
		counted = 0
	}
	f.plain -= counted
	f.passing = false
	err := f.pass(ctx, max(f.frame, f.in.start))
	f.passing = passing
	f.plain += counted
	return err
}

// isWhole reports whether the frame that has just ended may be shared as it is.
func (f *forwarding) isWhole() bool {
	return !f.relay.shared() || !f.passing || f.counted == 0 || sharing.Whole(f.in.buf[f.frame:f.in.scanned])
}

// quitTogether lets a client go that has nothing of its own at the upstream.
func (f *forwarding) quitTogether(ctx context.Context) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	f.client.Closing = true
	f.out.Status("OK")
	return nil
}

// passTogether is pass over a connection that is shared.
func (f *forwarding) passTogether(ctx context.Context, commands []byte, n int) error {
	if err := f.session.flush(); err != nil {
		return err
	}
	err := f.relay.share(ctx, commands, n)
	if err == nil || errors.Is(err, errOver) {
		return err
	}
	return f.refuse(ctx, commands, n, err)
}
