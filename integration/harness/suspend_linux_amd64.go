package harness

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockPage is the kernel's page of code (vDSO) with which a process reads the clock. clockFunction
// is the function in that page.
const (
	clockPage     = "[vdso]"
	clockFunction = "__vdso_clock_gettime"
)

// clockCode asks the kernel for the time. If the clock is CLOCK_MONOTONIC (1), the code subtracts
// the missed seconds.
var clockCode = []byte{
	0xb8, 0xe4, 0, 0, 0, // mov eax, 228: the number of the system call clock_gettime
	0x0f, 0x05, // syscall
	0x83, 0xff, 1, // cmp edi, 1
	0x75, 7, // jne to the end
	0x48, 0x81, 0x2e, 0, 0, 0, 0, // sub qword [rsi], the seconds
	0xc3, // ret
}

// secondsIndex is the index of the seconds in clockCode.
const secondsIndex = 15

// processClock puts clockCode in place of the code with which one process reads the clock. All
// processes share the page with that code. When one process writes to the page, the kernel copies
// the page for that process, as for a debugger's breakpoint.
type processClock struct {
	pid         int
	codeAddress int64 // address of the code in the process
	setBackBy   time.Duration
}

// findClock finds the code with which a stopped process reads the clock.
func findClock(pid int) (*processClock, error) {
	start, page, err := readClockPage(pid)
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	symbols, err := file.DynamicSymbols()
	for _, symbol := range symbols {
		if symbol.Name == clockFunction && symbol.Value+uint64(len(clockCode)) < uint64(len(page)) {
			return &processClock{pid: pid, codeAddress: start + int64(symbol.Value)}, nil
		}
	}
	return nil, errors.Join(ErrNoSuspend, err)
}

// setBack sets the clock back by duration, in addition to earlier calls, rounded down to whole
// seconds in total. The process must be stopped, and must not be executing the code that setBack
// replaces.
func (c *processClock) setBack(duration time.Duration) error {
	c.setBackBy += duration
	code := bytes.Clone(clockCode)
	binary.LittleEndian.PutUint32(code[secondsIndex:], uint32(c.setBackBy/time.Second))
	memory, err := os.OpenFile(processFile(c.pid, "mem"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = memory.WriteAt(code, c.codeAddress)
	return errors.Join(err, memory.Close())
}

// checkUnused returns errClockBusy if a thread of the process is within clockPage, and errNotStopped
// if a thread still runs.
func (c *processClock) checkUnused() error {
	start, page, err := readClockPage(c.pid)
	if err != nil {
		return err
	}
	threads, err := filepath.Glob(processFile(c.pid, "task/*/syscall"))
	if err != nil || len(threads) == 0 {
		return errors.Join(ErrNoSuspend, err)
	}
	for _, thread := range threads {
		at, err := programCounter(thread)
		if err != nil {
			return err
		}
		if at >= start && at < start+int64(len(page)) {
			return errClockBusy
		}
	}
	return nil
}

// programCounter returns the address at which a stopped thread continues: the last field of its
// file syscall in /proc.
func programCounter(file string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return 0, fmt.Errorf("%s is empty", file)
	}
	if fields[0] == "running" {
		return 0, errNotStopped
	}
	at, err := strconv.ParseUint(fields[len(fields)-1], 0, 64)
	return int64(at), err
}

// readClockPage returns the address and the content of clockPage.
func readClockPage(pid int) (start int64, page []byte, err error) {
	maps, err := os.ReadFile(processFile(pid, "maps"))
	if err != nil {
		return 0, nil, err
	}
	for line := range strings.Lines(string(maps)) {
		var end int64
		if !strings.HasSuffix(strings.TrimSpace(line), clockPage) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			return 0, nil, err
		}
		memory, err := os.Open(processFile(pid, "mem"))
		if err != nil {
			return 0, nil, err
		}
		page = make([]byte, end-start)
		_, err = memory.ReadAt(page, start)
		return start, page, errors.Join(err, memory.Close())
	}
	return 0, nil, ErrNoSuspend
}

func processFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }
