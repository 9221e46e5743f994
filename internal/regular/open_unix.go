//go:build unix

package regular

import "syscall"

// nonBlocking lets a FIFO without a writer be opened at once.
const nonBlocking = syscall.O_NONBLOCK
