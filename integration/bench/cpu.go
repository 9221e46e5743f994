package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTimes is the CPU time spent so far, or within a window.
type cpuTimes struct {
	load, proxy, masters time.Duration
	machine              time.Duration // by all processes and by the hypervisor
}

// sub returns what was spent since earlier.
func (c cpuTimes) sub(earlier cpuTimes) cpuTimes {
	return cpuTimes{
		load:    c.load - earlier.load,
		proxy:   c.proxy - earlier.proxy,
		masters: c.masters - earlier.masters,
		machine: c.machine - earlier.machine,
	}
}

// total is the CPU time of all parts of the benchmark.
func (c cpuTimes) total() time.Duration { return c.load + c.proxy + c.masters }

// others is what processes that do not belong to the benchmark took away.
func (c cpuTimes) others() time.Duration { return max(0, c.machine-c.total()) }

// cpu reads the CPU time of every process.
func (f *fleet) cpu() (c cpuTimes, err error) {
	for _, master := range f.masters {
		spent, err := master.CPU()
		if err != nil {
			return c, err
		}
		c.masters += spent
	}
	if f.proxy != nil {
		if c.proxy, err = f.proxy.CPU(); err != nil {
			return c, err
		}
	}
	if c.load, err = ownCPU(); err != nil {
		return c, err
	}
	c.machine, err = machineCPU()
	return c, err
}

// ownCPU is the user and system time of this process.
func ownCPU() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// machineCPU is the time that all cores were busy.
func machineCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(text))
}

// The columns of the first line of /proc/stat in which a core does something: user, nice, system, irq, softirq, steal.
var busyColumns = [...]int{1, 2, 3, 6, 7, 8}

// statTick is the unit of /proc/stat, the same on every platform that Go runs on.
const statTick = 10 * time.Millisecond

// parseBusy adds up the columns; the first line begins with "cpu " and is the sum of all cores.
func parseBusy(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) <= busyColumns[len(busyColumns)-1] || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var ticks int64
	for _, column := range busyColumns {
		n, err := strconv.ParseInt(fields[column], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * statTick, nil
}
