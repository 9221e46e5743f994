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

// haproxyConfig is a template with placeholders for the threads, the maximum number of clients, the
// address to listen on, and the upstream's address.
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
	return startOtherProxy("haproxy", func(addr, dir string) ([]string, error) {
		path := filepath.Join(dir, "haproxy.cfg")
		return []string{"-db", "-f", path}, writeConfig(path, haproxyConfig, threads, maxClients, addr, upstream)
	})
}

// nutcrackerConfig has placeholders for the address to listen on, and the upstream's address.
const nutcrackerConfig = `relay:
  listen: %s
  redis: true
  hash: fnv1a_64
  distribution: ketama
  servers:
    - %s:1
`

// startNutcracker starts nutcracker. Its statistics cannot be switched off, and need a port.
func startNutcracker(upstream string) (server, error) {
	return startOtherProxy("nutcracker", func(addr, dir string) ([]string, error) {
		stats, err := redistest.FreeAddr()
		if err != nil {
			return nil, err
		}
		host, port, err := net.SplitHostPort(stats)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, "nutcracker.yml")
		log, pid := filepath.Join(dir, "log"), filepath.Join(dir, "pid")
		args := []string{"-c", path, "-o", log, "-p", pid, "-a", host, "-s", port}
		return args, writeConfig(path, nutcrackerConfig, addr, upstream)
	})
}

// startOtherProxy starts another proxy. If the program is missing, the error names its package.
func startOtherProxy(program string, arguments func(addr, dir string) ([]string, error)) (server, error) {
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

var versionPattern = regexp.MustCompile(`\d+\.\d+(\.\d+)?[-+.~\w]*`)

// otherProxyVersion returns the version that the program prints to stdout or stderr, or "unknown".
func otherProxyVersion(program string) string {
	flag := map[string]string{nameHAProxy: "-v", nameNutcracker: "-V"}[program]
	path, err := harness.FindProgram(program)
	if err != nil {
		return "unknown"
	}
	output, _ := exec.Command(path, flag).CombinedOutput() // after an error, output has no version
	if version := versionPattern.Find(output); version != nil {
		return string(version)
	}
	return "unknown"
}
