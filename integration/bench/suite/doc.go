// Package suite is what the benchmarks have in common: how a command line is read, the masters and
// proxies that they work on, and pauses that an interrupt ends. What they print has package
// figures.
package suite
