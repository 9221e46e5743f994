//go:build unix

package process

import "syscall"

// stopSignal pauses a process, and continueSignal lets it continue.
const stopSignal, continueSignal = syscall.SIGSTOP, syscall.SIGCONT
