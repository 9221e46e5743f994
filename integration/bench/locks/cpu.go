package locks

import (
	"time"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/internal/process"
)

// cpuTimes holds the CPU times spent so far, or within a window.
type cpuTimes struct {
	load, proxy, masters time.Duration
	machine              time.Duration // used by all processes and by the hypervisor
}

func (c cpuTimes) sub(earlier cpuTimes) cpuTimes {
	return cpuTimes{
		load:    c.load - earlier.load,
		proxy:   c.proxy - earlier.proxy,
		masters: c.masters - earlier.masters,
		machine: c.machine - earlier.machine,
	}
}

// total returns the CPU time of all parts of the benchmark.
func (c cpuTimes) total() time.Duration { return c.load + c.proxy + c.masters }

// otherProcesses returns the CPU time of processes that do not belong to the benchmark.
func (c cpuTimes) otherProcesses() time.Duration { return max(0, c.machine-c.total()) }

func (f *fleet) readCPU() (c cpuTimes, err error) {
	if c.masters, err = suite.TotalCPU(f.Masters); err != nil {
		return c, err
	}
	if f.proxy != nil {
		if c.proxy, err = f.proxy.CPU(); err != nil {
			return c, err
		}
	}
	if c.load, err = process.OwnCPU(); err != nil {
		return c, err
	}
	c.machine, err = process.BusyCPU()
	return c, err
}
