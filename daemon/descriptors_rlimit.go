//go:build linux || darwin

package daemon

import "syscall"

// raiseOpenFileLimit raises the limit on open files to wanted, if it is lower, and returns the new
// limit. known is false if the system does not report the limit.
func raiseOpenFileLimit(wanted uint64) (limit uint64, known bool) {
	var limits syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limits) != nil {
		return 0, false
	}
	if uint64(limits.Cur) >= wanted {
		return uint64(limits.Cur), true
	}
	raised := limits
	raised.Cur = min(limits.Max, wanted)
	if raised.Cur > limits.Cur && syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
		limits = raised
	}
	return uint64(limits.Cur), true
}
