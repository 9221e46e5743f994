// Package figures computes and prints the figures of benchmarks: medians, ratios of two contenders,
// verdicts on goals, and the description of the machine. It starts no process except redis-server
// --version, and reads no files except those that describe the machine.
package figures
