//go:build !unix

package regular

// nonBlocking is not needed: there are no FIFOs among the files.
const nonBlocking = 0
