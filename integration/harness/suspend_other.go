//go:build !(linux && amd64)

package harness

import "time"

type ownClock struct{}

func findClock(int) (*ownClock, error) { return nil, ErrNoSuspend }

func (*ownClock) fallBehind(time.Duration) error { return ErrNoSuspend }

func (*ownClock) checkIdle() error { return ErrNoSuspend }
