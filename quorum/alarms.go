package quorum

import (
	"context"
	"time"

	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/queue"
	"redlock-proxy/quorum/watch"
)

// waiterAlarm returns an alarm for waiters of a key that request this number of slots, or 0 for an
// exclusive lock.
func (set *masterSet) waiterAlarm(key Key, slots int) queue.Alarm {
	return set.watcher.NewKeyAlarm(key.DB, key.cellName(), key.Tag != "", func(ctx context.Context) watch.Content {
		return set.keyState(ctx, key, slots)
	})
}

// alarmForChange returns an alarm that sends a signal to changed at every change of a key.
func (set *masterSet) alarmForChange(key Key, changed chan struct{}) *watch.Alarm {
	return set.watcher.NewChangeAlarm(key.DB, key.cellName(), changed)
}

// keyState returns the state of a key in its cell, for a waiter.
func (set *masterSet) keyState(ctx context.Context, key Key, slots int) watch.Content {
	l, err := set.readStored(ctx, key)
	if err != nil || l.TimeLeftUnknown {
		return watch.Content{Expiry: time.Now().Add(retryPause)}
	}
	left := l.TimeLeft
	if keygroup.IsHolders(l.Value) {
		holders, err := keygroup.OpenHolders(l)
		if err != nil {
			return watch.Content{Expiry: time.Now().Add(retryPause)}
		}
		if left = holders.UntilFree(slots); left == 0 {
			return watch.Content{Free: true}
		}
	}
	switch {
	case !l.Present:
		return watch.Content{Free: true}
	case key.Tag == "" && !l.Shared && !keygroup.IsHolders(l.Value):
		return watch.Content{IsOnlyKey: true}
	case left < 0:
		return watch.Content{}
	}
	return watch.Content{Expiry: time.Now().Add(left + time.Millisecond)}
}

// retryPause is the pause before a waiter tries again if the state or the remaining time of the key
// is unknown.
const retryPause = time.Second
