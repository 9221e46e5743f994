package watch

import (
	"context"
	"sync"
	"time"
)

// Content describes the state of a key in a cell that it may share with other keys.
type Content struct {
	// IsOnlyKey is set if the cell holds no other keys, so that reports about the cell concern the
	// key.
	IsOnlyKey bool
	// Free is set if the key does not exist, or its holders leave a slot for the waiter.
	Free bool
	// Expiry is the time when the waiter should try again: the expiry of the key, or a time soon if
	// the expiry is unknown; zero: never.
	Expiry time.Time
}

// KeyAlarm extends [Alarm] for one key of a cell that may also hold other keys, or several holders
// of the key. Reports of the masters about the cell do not name the key, and its expiry is not that
// of the key. So after each read that finds such a cell, the alarm reads the key once in the
// register. The result is valid until the next change or the next read of the cell.
type KeyAlarm struct {
	*Alarm
	read func(context.Context) Content
	// readAlways makes the alarm read the key after each read that finds the cell held, whatever
	// the value of the cell.
	readAlways bool
	ctx        context.Context
	cancel     context.CancelFunc

	mu sync.Mutex
	// readNumber counts the reads of the cell. Each needs a new read of the key.
	readNumber int
	reading    bool
	content    *Content // nil: not read since the last read of the cell
}

// NewKeyAlarm sets an alarm for a key of a cell. read reads the key in the register. Unless
// readAlways is set, the alarm calls read only if Options.HasExpiries returns true for the value of
// the cell.
func (w *Watcher) NewKeyAlarm(db int, cell string, readAlways bool, read func(context.Context) Content) *KeyAlarm {
	a := &KeyAlarm{Alarm: w.NewAlarm(db, cell), read: read, readAlways: readAlways}
	a.ctx, a.cancel = context.WithCancel(w.ctx)
	return a
}

// View returns the known state of the key. If the cell is held and the key was not read since the
// last read of the cell, View starts to read it.
func (a *KeyAlarm) View(now time.Time) View {
	v := a.Alarm.View(now)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case v.Verdict != Held, v.SomeChanged:
		a.resetRead()
		return v
	case !a.readAlways && !v.HasExpiries:
		return v
	case a.content == nil:
		a.startRead()
		return View{Reading: true}
	case a.content.IsOnlyKey:
		return v
	case a.content.Free:
		return View{Verdict: Free}
	}
	v.Expiry = a.content.Expiry
	return v
}

// startRead starts to read the key, unless a read is in progress. Callers hold mu.
func (a *KeyAlarm) startRead() {
	if a.reading {
		return
	}
	a.reading = true
	number := a.readNumber
	a.watcher.start(func() {
		content := a.read(a.ctx)
		if a.storeRead(number, content) {
			a.notify()
		}
	})
}

// storeRead stores the result of a read and returns true, unless the cell was read again meanwhile.
func (a *KeyAlarm) storeRead(number int, content Content) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.readNumber != number {
		return false
	}
	a.reading, a.content = false, &content
	return true
}

// resetRead discards the result of the last read. Callers hold mu.
func (a *KeyAlarm) resetRead() {
	a.readNumber++
	a.reading, a.content = false, nil
}

// Read calls Alarm.Read, after which the alarm must read the key again.
func (a *KeyAlarm) Read(now time.Time) {
	a.resetBeforeRead()
	a.Alarm.Read(now)
}

// ReadAll calls Alarm.ReadAll, after which the alarm must read the key again.
func (a *KeyAlarm) ReadAll() {
	a.resetBeforeRead()
	a.Alarm.ReadAll()
}

func (a *KeyAlarm) resetBeforeRead() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resetRead()
}

// Stop removes the alarm, and cancels a read in progress.
func (a *KeyAlarm) Stop() {
	a.cancel()
	a.Alarm.Stop()
}
