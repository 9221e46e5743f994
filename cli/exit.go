package cli

import "errors"

// The exit codes. Scripts rely on them; docs/operate.md and docs/locks.md list them.
const (
	// exitFailed reports a wrong command line or configuration, or any failure without a code of
	// its own.
	exitFailed      = 1
	exitUnsafe      = 2 // locks would not be safe
	exitUnavailable = 3 // no locks are available
	exitDegraded    = 4 // locks are granted, but something is wrong
	exitDiffering   = 5 // the running proxies have different settings
)

// exitMeanings returns the meanings of the exit codes, from 0.
func exitMeanings() []string {
	return []string{
		0:               "success, or the proxy was shut down in order",
		exitFailed:      "the command line or the configuration is wrong, or the command failed",
		exitUnsafe:      "check: locks would not be safe; init: refused",
		exitUnavailable: "no locks are available",
		exitDegraded:    "check: locks are granted, but something is wrong",
		exitDiffering:   "check: the settings differ from those of the running proxies",
	}
}

// The exit codes of the lock command, which otherwise ends with the code of the command that it
// runs. The first three are unusual, so that no command is likely to have them. The remaining codes
// are as in a shell.
const (
	exitHeld       = 120 // another client held the lock; the command did not run
	exitLost       = 121 // the lock was lost before the command ended
	exitNotGranted = 122 // the lock was not granted for another reason; the command did not run
	exitCannotRun  = 126
	exitNotFound   = 127
	exitSignalled  = 128 // plus the number of the signal
)

// errReported stands for a failure whose text the program has already printed. Main prints nothing
// for it.
var errReported = errors.New("reported above")

// codedError adds an exit code to an error.
type codedError struct {
	error
	code int
}

// Unwrap returns the error without the code.
func (e codedError) Unwrap() error { return e.error }

func withCode(code int, err error) error { return codedError{err, code} }

// exitCode returns the code with which the process ends for an error.
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
