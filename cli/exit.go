package cli

import "errors"

// The exit codes. They are documented in docs/operate.md and docs/locks.md: scripts rely on them.
const (
	exitFailed      = 1 // the command line, the configuration, or anything that has no code of its own
	exitUnsafe      = 2 // locks could not be relied on
	exitUnavailable = 3 // no locks are available
	exitDegraded    = 4 // locks are had, but not all is well
	exitUnlike      = 5 // proxies with other settings are running
)

// exitMeanings are what the exit codes mean, from 0.
func exitMeanings() []string {
	return []string{
		0:               "all is well, or the proxy was stopped in order",
		exitFailed:      "the command line or the configuration is wrong, or the command failed",
		exitUnsafe:      "check: locks could not be relied on; init: refused",
		exitUnavailable: "no locks are available",
		exitDegraded:    "check: locks are granted, but not all is well",
		exitUnlike:      "check: the settings differ from those of the running proxies",
	}
}

// Those of lock, beside that of its command. The first ones are like no others; the rest is as in a
// shell.
const (
	exitHeld      = 120 // another held the lock; the command did not run
	exitLost      = 121 // the lock was lost before the command ended
	exitNotAsked  = 122 // the lock was not granted for another reason; the command did not run
	exitCannotRun = 126
	exitNotFound  = 127
	exitSignalled = 128 // and the number of the signal
)

// errReported ends the process with a code where all was reported already.
var errReported = errors.New("reported above")

// codedError has an exit code of its own.
type codedError struct {
	error
	code int
}

// Unwrap is the error without the code.
func (e codedError) Unwrap() error { return e.error }

func coded(code int, err error) error { return codedError{err, code} }

// exitCode is the code with which the process ends for an error.
func exitCode(err error) int {
	var c codedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &c):
		return c.code
	default:
		return exitFailed
	}
}
