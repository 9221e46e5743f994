package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// BusyCPU returns the sum of the busy times of all cores since the start of the machine. It
// includes time that the hypervisor gave to other guests. Linux only.
func BusyCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(text))
}

// busyColumns lists the columns of the first line of /proc/stat that count busy time: user, nice,
// system, irq, softirq, steal.
var busyColumns = [...]int{1, 2, 3, 6, 7, 8}

// parseBusy adds up the busy columns of the first line, which begins with "cpu " and is the sum of
// all cores.
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
	return time.Duration(ticks) * (time.Second / ticksPerSecond), nil
}
