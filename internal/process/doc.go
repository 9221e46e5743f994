// Package process runs other programs for tests and benchmarks: children that are killed when this
// process ends, however it ends (on Linux; elsewhere only by Kill), that can be paused, and whose
// output and costs can be read.
package process
