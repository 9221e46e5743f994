package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, the unit of the CPU times in /proc: 100 on every platform that Go
// supports.
const ticksPerSecond = 100

// The indexes of fields in /proc/<pid>/stat, counted from the state, the first field after the
// command's name (proc(5) fields 3, 14, 15, 24).
const (
	statState  = 0
	statUser   = 11
	statSystem = 12
	statRSS    = 21
)

// procStat holds values from /proc/<pid>/stat.
type procStat struct {
	state string        // R, S, D, T (stopped), Z …
	cpu   time.Duration // user + system of all threads; resolution 10 ms
	rss   int64         // bytes
}

// CPU returns the user and system time since the start.
func (p *Process) CPU() (time.Duration, error) {
	stat, err := readProcStat(p.PID())
	return stat.cpu, err
}

// RSS returns the resident memory in bytes.
func (p *Process) RSS() (int64, error) {
	stat, err := readProcStat(p.PID())
	return stat.rss, err
}

// Descriptors returns the number of open file descriptors (Linux only).
func (p *Process) Descriptors() (int, error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("open descriptors: %w", err)
	}
	return len(open), nil
}

// readProcStat reads the file of a process that has not ended (Linux only).
func readProcStat(pid int) (procStat, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, fmt.Errorf("process statistics: %w", err)
	}
	return parseProcStat(string(line))
}

// parseProcStat parses one line. The command's name is in parentheses, and may contain blanks and
// parentheses.
func parseProcStat(line string) (procStat, error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) <= statRSS {
		return procStat{}, fmt.Errorf("process statistics: number of fields after the name in %q: %d, want more than %d",
			line, len(fields), statRSS)
	}
	var numbers [3]int64
	for i, at := range []int{statUser, statSystem, statRSS} {
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return procStat{}, fmt.Errorf("process statistics: %w", err)
		}
		numbers[i] = n
	}
	ticks := numbers[0] + numbers[1]
	return procStat{
		state: fields[statState],
		cpu:   time.Duration(ticks) * (time.Second / ticksPerSecond),
		rss:   numbers[2] * int64(os.Getpagesize()),
	}, nil
}
