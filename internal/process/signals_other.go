//go:build !unix

package process

import "syscall"

// stopSignal and continueSignal do not exist on this system. Sending them returns an error.
const stopSignal, continueSignal = syscall.Signal(-1), syscall.Signal(-2)
