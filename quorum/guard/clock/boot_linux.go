package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot is how long the machine has been up, with the time that it was suspended,
// which the monotonic clock leaves out.
func SinceBoot() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
