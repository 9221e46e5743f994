// Package figures has what the benchmarks print beside what they measure: medians, ratios of two
// contenders, the verdicts on goals, and the machine that all of it was measured on. It starts
// nothing and does no I/O but to read facts of the machine.
package figures
