//go:build !linux

package guard

import "time"

// sinceBoot is not known here: a clock that moved is never taken for our own.
func sinceBoot() time.Duration { return 0 }
