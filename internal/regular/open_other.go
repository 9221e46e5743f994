//go:build !unix

package regular

// nonBlocking is 0: files on this system cannot be FIFOs, which block when they are opened.
const nonBlocking = 0
