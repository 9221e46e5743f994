package quorum

import (
	"context"
	"time"

	"redlock-proxy/quorum/queue"
	"redlock-proxy/quorum/watch"
)

// waiterAlarm returns an alarm for waiters of a key.
func (set *masterSet) waiterAlarm(key Key) queue.Alarm {
	if key.Tag != "" || set.cluster.opts.Tagged {
		return set.watcher.NewKeyAlarm(key.DB, key.cellName(), func(ctx context.Context) watch.Content {
			return set.keyState(ctx, key)
		})
	}
	return set.watcher.NewAlarm(key.DB, key.Name)
}

// alarmForChange returns an alarm that sends a signal to changed at every change of a key.
func (set *masterSet) alarmForChange(key Key, changed chan struct{}) *watch.Alarm {
	return set.watcher.NewChangeAlarm(key.DB, key.cellName(), changed)
}

// keyState returns the state of a key in its cell, for a waiter.
func (set *masterSet) keyState(ctx context.Context, key Key) watch.Content {
	looks, err := set.Read(ctx, []Key{key})
	switch {
	case err != nil, looks[0].TimeLeftUnknown:
		return watch.Content{Expiry: time.Now().Add(rereadPause)}
	case key.Tag == "" && !looks[0].Shared:
		return watch.Content{IsOnlyKey: true}
	case !looks[0].Present:
		return watch.Content{Absent: true}
	case looks[0].TimeLeft < 0:
		return watch.Content{}
	}
	return watch.Content{Expiry: time.Now().Add(looks[0].TimeLeft + time.Millisecond)}
}

// rereadPause is the pause before a waiter reads a key again if its state or remaining time is
// unknown.
const rereadPause = time.Second
