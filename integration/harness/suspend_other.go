//go:build !(linux && amd64)

package harness

import "time"

type ownClock struct{}

func takeClock(int) (*ownClock, error) { return nil, ErrNoSuspend }

func (*ownClock) miss(time.Duration) error { return ErrNoSuspend }

func (*ownClock) idle() error { return ErrNoSuspend }
