// Package meter counts the memory, the work and the time of a run of Lua, and ends the run at its
// limits.
package meter
