// Package figures computes and prints the figures of benchmarks: medians, ratios of two contenders,
// verdicts on goals, and the description of the machine. It starts no process except redis-server
// --version, and does no I/O except reading facts about the machine.
package figures
