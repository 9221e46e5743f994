// Package process runs other programs for tests and benchmarks. On Linux, the kernel kills a child
// when this process ends, even if this process crashes. On other systems, only Kill ends a child. A
// caller can pause children, and read their output, CPU time and memory.
package process
