package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine is what a reader must know to compare figures.
type machine struct {
	cpu, system, load string
	golang, redis     string
	cores             int
	modules           map[string]string // path to version
}

// unknown is printed for what this system does not tell.
const unknown = "unknown"

// comparedModules are the libraries that take part.
func comparedModules() []string {
	return []string{"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"}
}

func readMachine() machine {
	return machine{
		cpu:     cpuModel(readFile("/proc/cpuinfo")),
		system:  runtime.GOOS + " " + strings.TrimSpace(readFile("/proc/sys/kernel/osrelease")),
		load:    firstField(readFile("/proc/loadavg")),
		golang:  runtime.Version(),
		redis:   redisVersion(),
		cores:   runtime.NumCPU(),
		modules: moduleVersions(),
	}
}

// readFile returns the file's text, or unknown.
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

// cpuModel finds the model in the text of /proc/cpuinfo.
func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

// redisVersion asks the program; its answer has a word v=VERSION.
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

// writeMachine prints the header of the report.
func writeMachine(w io.Writer, m machine, set settings, args []string) {
	fmt.Fprintf(w, "## Benchmark: lock and unlock, proxy beside redsync and one Redis\n\n")
	fmt.Fprintf(w, "%s, %d cores shared by load generator, proxy and all %d masters, load average before the run %s; %s, %s, redis-server %s",
		m.cpu, m.cores, set.masters, m.load, m.system, m.golang, m.redis)
	for _, path := range comparedModules() {
		fmt.Fprintf(w, ", %s %s", path, m.version(path))
	}
	fmt.Fprintf(w, ".\nMedians of %d rounds, %v per contender and round. Made by `go run ./integration/bench%s`.\n",
		set.rounds, set.window, strings.Join(append([]string{""}, args...), " "))
}

// version of a module, or unknown.
func (m machine) version(path string) string {
	if version, ok := m.modules[path]; ok {
		return version
	}
	return unknown
}
