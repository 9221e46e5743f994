//go:build unix

package process

import (
	"syscall"
	"time"
)

// OwnCPU returns the user and system time of this process since its start.
func OwnCPU() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
