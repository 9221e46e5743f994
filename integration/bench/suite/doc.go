// Package suite holds the common parts of the benchmarks: the command line, masters and proxies,
// and pauses that an interrupt ends. Package figures prints the results.
package suite
