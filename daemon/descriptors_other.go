//go:build !linux && !darwin

package daemon

// raiseOpenFileLimit does nothing: the limit of this system is unknown.
func raiseOpenFileLimit(uint64) (limit uint64, known bool) { return 0, false }
