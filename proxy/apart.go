package proxy

import (
	"context"
	"errors"

	"redlock-proxy/proxy/sharing"
	"redlock-proxy/proxy/upstream"
)

// rejoinPool is rejoin for a client that has said who it is and how it speaks, and goes on with what may be shared.
func (f *sending) rejoinPool(ctx context.Context) {
	s := &f.relay.shares
	if !s.opening || f.relay.isShared() || f.plain > 0 || f.slot != nil || f.begun || f.in.start < f.in.frame {
		return
	}
	if name, long := f.in.scanner.Name(); long || !sharing.May(name) || !f.relay.up.LetsIn() {
		return
	}
	if s.rejoin(ctx); f.relay.isShared() {
		s.returns++
	}
}

// part has what follows go over a connection of the client's own.
func (a *asking) part(ctx context.Context) error {
	if !a.relay.isShared() {
		return nil
	}
	if a.relay.shares.isOwed() {
		if err := a.attend(ctx, a.relay.shares.collect); err != nil {
			return err
		}
	}
	a.relay.setApart()
	return a.relay.isOver()
}

// refit has the current frame go when it fits, or over a connection of the client's own, and what stands before it as it was to.
func (f *forwarding) refit(ctx context.Context) error {
	why := f.fit
	f.fit = fits
	if why == apart {
		f.relay.shares.opening = false
	}
	if err := f.passWhole(ctx); err != nil {
		return err
	}
	if why == later {
		return f.attend(ctx, f.relay.shares.collect)
	}
	if err := f.part(ctx); err != nil {
		return err
	}
	if f.in.scanner.AtGap() {
		f.endFrame()
		return nil
	}
	f.relay.lane.fits(&f.in.scanner, 0) // which notes what the command may leave behind
	if name, _ := f.in.scanner.Name(); sharing.Waits(name) {
		return f.remind(ctx)
	}
	return nil
}

// remind has the upstream take what the client has written so far for written before the next command: WAIT asks of its own
// connection's last command how far replicas must be, and on a new one there was none.
func (a *asking) remind(ctx context.Context) error {
	_, err := a.ask(ctx, []byte("*1\r\n$4\r\nPING\r\n"))
	if _, ok := errors.AsType[*upstream.Error](err); ok {
		return nil // as the command will find
	}
	return err
}

// passWhole sends what stands before the current frame, and nothing of that.
func (f *sending) passWhole(ctx context.Context) error {
	passing, counted := f.passing, f.counted
	f.plain -= counted
	f.passing = false
	err := f.pass(ctx, f.in.frame)
	f.passing = passing
	f.plain += counted
	return err
}
