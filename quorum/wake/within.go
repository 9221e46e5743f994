package wake

import (
	"context"
	"sync"
	"time"
)

// Content is what a key was found to hold in a cell that it may share with others.
type Content struct {
	// Alone: there are no others, so what the masters tell of the cell is about the key.
	Alone bool
	// Absent: the key is not there.
	Absent bool
	// End is when the key is over, which no master tells of; zero: never.
	End time.Time
}

// Within is an [Alarm] for one key of a cell in which others may stand, too. What the masters tell
// of the cell does not say of which key, so that the key is read after each look that found the
// cell held: once, until there is another change or another look.
type Within struct {
	*Alarm
	read func(context.Context) Content
	ctx  context.Context
	end  context.CancelFunc

	mu sync.Mutex
	// look numbers the looks, each of which has a read of its own.
	look    int
	reading bool
	found   *Content // nil: not read since the last look
}

// Within sets one for a key of a cell, which read finds.
func (w *Waker) Within(db int, cell string, read func(context.Context) Content) *Within {
	a := &Within{Alarm: w.Alarm(db, cell), read: read}
	a.ctx, a.end = context.WithCancel(w.ctx)
	return a
}

// View is what is known of the key. It begins to read it where the cell is held and nothing else is
// known.
func (a *Within) View(now time.Time) View {
	v := a.Alarm.View(now)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case v.Verdict != Held, v.Stirred:
		a.forget()
		return v
	case a.found == nil:
		a.begin()
		return View{Asking: true}
	case a.found.Alone:
		return v
	case a.found.Absent:
		return View{Verdict: Free}
	}
	v.End = a.found.End
	return v
}

// begin reads the key, unless that is under way. It is called with mu held.
func (a *Within) begin() {
	if a.reading {
		return
	}
	a.reading = true
	look := a.look
	a.waker.start(func() {
		found := a.read(a.ctx)
		if a.keep(look, found) {
			a.ring()
		}
	})
}

// keep takes what was read, unless there was another look meanwhile.
func (a *Within) keep(look int, found Content) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.look != look {
		return false
	}
	a.reading, a.found = false, &found
	return true
}

// forget is called with mu held.
func (a *Within) forget() {
	a.look++
	a.reading, a.found = false, nil
}

// Look is Alarm.Look, and has the key read anew.
func (a *Within) Look(now time.Time) {
	a.anew()
	a.Alarm.Look(now)
}

// LookAnew is Alarm.LookAnew, and has the key read anew.
func (a *Within) LookAnew() {
	a.anew()
	a.Alarm.LookAnew()
}

func (a *Within) anew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget()
}

// Stop ends it, and what is being read.
func (a *Within) Stop() {
	a.end()
	a.Alarm.Stop()
}
