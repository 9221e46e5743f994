// Package process runs other programs for tests and benchmarks. On Linux, a child is killed when
// this process ends, even if this process crashes. On other systems, only Kill ends a child.
// Children can be paused, and their output, CPU time and memory can be read.
package process
