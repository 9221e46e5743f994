//go:build linux || darwin

package daemon

import "syscall"

// raiseDescriptors raises the limit on open files, if it is lower than what is wanted, and
// gives what it is then. known is false where the system does not say.
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
