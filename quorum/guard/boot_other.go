//go:build !linux

package guard

import "time"

// sinceBoot returns 0, which means unknown: a clock step is never attributed to this machine.
func sinceBoot() time.Duration { return 0 }
