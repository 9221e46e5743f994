// Package pacing spaces tries that several processes make at the same thing, so that they do not
// stay in step.
package pacing

import (
	"context"
	"time"
)

// Pauses are those between the tries of one: each twice as long as the one before, from Shortest
// up to Longest, and jittered.
type Pauses struct {
	Shortest, Longest time.Duration
	// Rand gives numbers in [0, 1).
	Rand func() float64

	last time.Duration
}

// Reset begins with the shortest again.
func (p *Pauses) Reset() { p.last = 0 }

// Next is how long to wait before the next try.
func (p *Pauses) Next() time.Duration {
	p.last = min(max(2*p.last, p.Shortest), p.Longest)
	return Jittered(p.last, p.Rand)
}

// Jittered is between a half of d and d; rand gives numbers in [0, 1).
func Jittered(d time.Duration, rand func() float64) time.Duration {
	return d/2 + time.Duration(rand()*float64(d)/2)
}

// Sleep waits, or returns the cause of ctx if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
