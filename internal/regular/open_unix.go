//go:build unix

package regular

import "syscall"

// nonBlocking makes the opening of a FIFO without a writer return immediately.
const nonBlocking = syscall.O_NONBLOCK
