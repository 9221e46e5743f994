//go:build !linux

package clock

import "time"

// SinceBoot is not known here: a clock that moved is never taken for our own.
func SinceBoot() time.Duration { return 0 }
