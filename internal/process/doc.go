// Package process runs other programs for tests and benchmarks. On Linux, the kernel kills a child
// when this process ends, even if this process crashes. On other systems, a child that was not
// killed outlives this process. A caller can pause children, and read their output, CPU time and
// memory.
package process
