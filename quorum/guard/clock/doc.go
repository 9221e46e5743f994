// Package clock compares the clocks of masters with this process' own, without I/O: whether a
// clock stepped, by how much, and whose it was.
package clock
