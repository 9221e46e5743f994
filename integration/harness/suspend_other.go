//go:build !(linux && amd64)

package harness

import "time"

type processClock struct{}

func findClock(int) (*processClock, error) { return nil, ErrNoSuspend }

func (*processClock) setBack(time.Duration) error { return ErrNoSuspend }

func (*processClock) checkUnused() error { return ErrNoSuspend }
