package relay

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

// haproxyConfig has, in this order: threads, the most clients, the address to listen on, the
// upstream's.
const haproxyConfig = `global
    nbthread %d
    maxconn %d
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen relay
    bind %s
    server upstream %s
`

// startHAProxy starts HAProxy as one process in the foreground.
func startHAProxy(upstream string, threads, maxClients int) (server, error) {
	return startRival("haproxy", func(addr, dir string) ([]string, error) {
		path := filepath.Join(dir, "haproxy.cfg")
		return []string{"-db", "-f", path}, writeConfig(path, haproxyConfig, threads, maxClients, addr, upstream)
	})
}

// nutcrackerConfig has the address to listen on, and the upstream's.
const nutcrackerConfig = `relay:
  listen: %s
  redis: true
  hash: fnv1a_64
  distribution: ketama
  servers:
    - %s:1
`

// startNutcracker starts nutcracker, whose statistics cannot be switched off and need a port of
// their own.
func startNutcracker(upstream string) (server, error) {
	return startRival("nutcracker", func(addr, dir string) ([]string, error) {
		stats, err := redistest.FreeAddr()
		if err != nil {
			return nil, err
		}
		host, port, err := net.SplitHostPort(stats)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, "nutcracker.yml")
		args := []string{"-c", path, "-o", filepath.Join(dir, "log"), "-p", filepath.Join(dir, "pid"), "-a", host, "-s", port}
		return args, writeConfig(path, nutcrackerConfig, addr, upstream)
	})
}

// startRival says how to come by a program that is missing.
func startRival(program string, arguments func(addr, dir string) ([]string, error)) (server, error) {
	s, err := harness.StartServer(harness.ServerOptions{Program: program, Arguments: arguments})
	if errors.Is(err, harness.ErrNoProgram) {
		return nil, fmt.Errorf("%w: apt-get install %s, or leave it out with -contenders", err, program)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func writeConfig(path, format string, values ...any) error {
	return os.WriteFile(path, fmt.Appendf(nil, format, values...), 0o600)
}

var versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?[-+.~\w]*`)

// rivalVersion asks the program, which prints its version to stdout or stderr.
func rivalVersion(program string) string {
	flag := map[string]string{nameHAProxy: "-v", nameNutcracker: "-V"}[program]
	path, err := harness.LookProgram(program)
	if err != nil {
		return "unknown"
	}
	output, _ := exec.Command(path, flag).CombinedOutput() // without a version in it, it is unknown
	if version := versionNumber.Find(output); version != nil {
		return string(version)
	}
	return "unknown"
}
