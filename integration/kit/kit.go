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

// Patience is how long a test waits for what must come; far longer than it takes on an idle
// machine.
const Patience = time.Minute

// Main runs the tests of a package, removes the program that they built, and exits.
func Main(m *testing.M) {
	code := m.Run()
	if err := harness.RemoveBuild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// MainAtOnce is Main for a package of which so many tests may run at a time, where they are
// parallel: more than there are processors, for they wait more than they compute.
func MainAtOnce(m *testing.M, tests int) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
	Main(m)
}

// Must ends the test at an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NoError fails the test at an error, and lets it go on: for what is done when it ends.
func NoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// FreePort is the number of a port of 127.0.0.1 that nothing listens on.
func FreePort(t *testing.T) string {
	t.Helper()
	addr, err := redistest.FreeAddr()
	Must(t, err)
	_, port, err := net.SplitHostPort(addr)
	Must(t, err)
	return port
}

// OtherAddress is one of this machine that is not of its loopback interface.
func OtherAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	Must(t, err)
	for _, addr := range all {
		if ip, ok := addr.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	redistest.Absent(t, "an address of this machine beside the loopback interface")
	return ""
}
