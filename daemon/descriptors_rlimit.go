//go:build linux || darwin

package daemon

import "syscall"

// raiseDescriptors raises the limit on open files to wanted, if it is lower, and returns the new
// limit. known is false if the system does not report the limit.
func raiseDescriptors(wanted uint64) (limit uint64, known bool) {
	var now syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now) != nil {
		return 0, false
	}
	if uint64(now.Cur) >= wanted {
		return uint64(now.Cur), true
	}
	raised := now
	raised.Cur = min(now.Max, wanted)
	if raised.Cur > now.Cur && syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
		now = raised
	}
	return uint64(now.Cur), true
}
