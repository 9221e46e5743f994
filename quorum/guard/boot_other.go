//go:build !linux

package guard

import "time"

// timeSinceBoot returns 0, which means unknown. So the guard never attributes a clock step to a
// suspension of this machine.
func timeSinceBoot() time.Duration { return 0 }
