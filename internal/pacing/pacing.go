// Package pacing spaces the retries of several processes, so that they do not retry in step.
package pacing

import (
	"context"
	"time"
)

// Pauses computes the pauses between the tries of one process. Each pause is twice as long as the
// previous pause, from MinPause up to MaxPause, less jitter.
type Pauses struct {
	MinPause, MaxPause time.Duration
	// Rand returns numbers in [0, 1).
	Rand func() float64

	lastPause time.Duration
}

// Reset makes the next pause the shortest again.
func (p *Pauses) Reset() { p.lastPause = 0 }

// Next returns the time to wait before the next try.
func (p *Pauses) Next() time.Duration {
	p.lastPause = min(max(2*p.lastPause, p.MinPause), p.MaxPause)
	return Jitter(p.lastPause, p.Rand)
}

// Jitter returns a random duration between d/2 and d; rand returns numbers in [0, 1).
func Jitter(d time.Duration, rand func() float64) time.Duration {
	return d/2 + time.Duration(rand()*float64(d)/2)
}

// Sleep waits for d. It returns the cause of ctx if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
