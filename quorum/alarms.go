package quorum

import (
	"context"
	"time"

	"redlock-proxy/quorum/queue"
	"redlock-proxy/quorum/wake"
)

// alarm sets one for a key.
func (g *generation) alarm(key Key) queue.Alarm {
	if key.Tag != "" || g.of.opts.Tagged {
		return g.waker.Within(key.DB, key.cell(), func(ctx context.Context) wake.Content { return g.content(ctx, key) })
	}
	return g.waker.Alarm(key.DB, key.Name)
}

// alarmForChange sets one for whatever change of a key, which rings this bell.
func (g *generation) alarmForChange(key Key, bell chan struct{}) *wake.Alarm {
	return g.waker.ForChange(key.DB, key.cell(), bell)
}

// content is what a key holds of its cell, for one who waits for it.
func (g *generation) content(ctx context.Context, key Key) wake.Content {
	looks, err := g.Read(ctx, []Key{key})
	switch {
	case err != nil, looks[0].Unknown:
		return wake.Content{End: time.Now().Add(retryShared)}
	case key.Tag == "" && !looks[0].Shared:
		return wake.Content{Alone: true}
	case !looks[0].Present:
		return wake.Content{Absent: true}
	case looks[0].Left < 0:
		return wake.Content{}
	}
	return wake.Content{End: time.Now().Add(looks[0].Left + time.Millisecond)}
}

// retryShared is after what time one who waits for a key tries again that could not be read.
const retryShared = time.Second
