// Package meter counts the memory, the work and the time of a Lua run, and ends the run at its
// limits.
package meter
