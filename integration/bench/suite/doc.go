// Package suite has the common parts of the benchmarks: the command line, masters and proxies, and
// pauses that an interrupt ends. Package figures has their output.
package suite
