package guard

import (
	"time"

	"golang.org/x/sys/unix"
)

// timeSinceBoot returns how long the machine has been up, including the time for which it was
// suspended. The monotonic clock omits that time.
func timeSinceBoot() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
