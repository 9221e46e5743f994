package figures

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine describes the machine and the versions of the software.
type Machine struct {
	CPU, System, Load string
	Go, Redis         string
	Cores             int
	Modules           map[string]string // path to version
}

// unknown takes the place of missing facts.
const unknown = "unknown"

// ReadMachine reads the facts from the system, redis-server and the build of this program.
func ReadMachine() Machine {
	return Machine{
		CPU:     cpuModel(readFile("/proc/cpuinfo")),
		System:  runtime.GOOS + " " + strings.TrimSpace(readFile("/proc/sys/kernel/osrelease")),
		Load:    firstField(readFile("/proc/loadavg")),
		Go:      runtime.Version(),
		Redis:   redisVersion(),
		Cores:   runtime.NumCPU(),
		Modules: moduleVersions(),
	}
}

// Header returns a description of the machine in one line, without a line end. sharers names the
// processes that share its cores.
func (m Machine) Header(sharers string) string {
	return fmt.Sprintf("%s, %d cores shared by %s, load average before the run %s; %s, %s, redis-server %s",
		m.CPU, m.Cores, sharers, m.Load, m.System, m.Go, m.Redis)
}

// Version returns the version of a module, or "unknown".
func (m Machine) Version(path string) string {
	if version, ok := m.Modules[path]; ok {
		return version
	}
	return unknown
}

// readFile returns the file's text, or unknown after an error.
func readFile(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	return string(text)
}

func firstField(text string) string {
	field, _, _ := strings.Cut(text, " ")
	return field
}

// cpuModel returns the model in the text of /proc/cpuinfo.
func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

// redisVersion returns the version that redis-server prints as v=VERSION.
func redisVersion() string {
	output, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return unknown
	}
	for _, word := range strings.Fields(string(output)) {
		if version, ok := strings.CutPrefix(word, "v="); ok {
			return version
		}
	}
	return unknown
}

func moduleVersions() map[string]string {
	versions := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	for _, module := range info.Deps {
		versions[module.Path] = module.Version
	}
	return versions
}
