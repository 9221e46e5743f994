package kit

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

// WaitLimit limits a test's wait for a condition. On an idle machine, the wait is much shorter.
const WaitLimit = time.Minute

// Main runs the tests of a package, removes the program that they built, and exits.
func Main(m *testing.M) {
	code := m.Run()
	if err := harness.RemoveBuild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// MainParallel runs the tests of a package like Main, with up to the given number of parallel
// tests. This number may exceed the number of processors, because the tests mostly wait.
func MainParallel(m *testing.M, tests int) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
	Main(m)
}

// Must ends the test if err is not nil.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NoError fails the test if err is not nil, but lets it continue, for cleanups.
func NoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// FreePort returns the number of a free port of 127.0.0.1.
func FreePort(t *testing.T) string {
	t.Helper()
	addr, err := redistest.FreeAddr()
	Must(t, err)
	_, port, err := net.SplitHostPort(addr)
	Must(t, err)
	return port
}

// NonLoopbackAddress returns an IPv4 address of this machine that is not a loopback address.
// Without such an address, it skips the test.
func NonLoopbackAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	Must(t, err)
	for _, addr := range all {
		if ip, ok := addr.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	redistest.SkipMissing(t, "an address of this machine beside the loopback interface")
	return ""
}

// ReplaceFile replaces the text of a file atomically, so that no reader sees only a part of it.
func ReplaceFile(file, text string) error {
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
