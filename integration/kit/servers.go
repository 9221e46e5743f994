package kit

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// StartRedis starts a redis-server with further arguments, which ends with the test.
func StartRedis(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	return redistest.New(t, redistest.Options{ExtraArgs: args})
}

// StartReference starts a server of the version as which commands on lock keys are answered,
// whatever version masters and upstream have: the installed one, which is 7.0.
func StartReference(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	return redistest.New(t, redistest.Options{Version: redistest.Installed, ExtraArgs: args})
}

// StartLike starts a server of the same version as another one, of which it can read all that is
// written.
func StartLike(t *testing.T, server *redistest.Server, args ...string) *redistest.Server {
	t.Helper()
	return redistest.New(t, redistest.Options{Version: server.Version(), ExtraArgs: args})
}

// StartReplica starts a replica of a server, and returns when it has all that the server holds.
func StartReplica(t *testing.T, master *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr())
	Must(t, err)
	replica := StartLike(t, master, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
	Soon(t, func() error { return InStep(replica) })
	return replica
}

// InStep wants a replica to have all that its master holds.
func InStep(replica *redistest.Server) error {
	info, err := AskIn(replica, "0", "INFO", "replication")
	if text, _ := info.(string); err == nil && !strings.Contains(text, "master_link_status:up") {
		err = fmt.Errorf("it does not synchronise: %s", text)
	}
	return err
}

// NewClock is a clock for servers (redistest.Options), which is right until it is set.
func NewClock(t *testing.T) *redistest.Clock {
	t.Helper()
	clock, err := redistest.NewClock(t.TempDir())
	if errors.Is(err, redistest.ErrNoFakeTime) {
		redistest.Absent(t, err.Error())
	}
	Must(t, err)
	return clock
}

// StartMasters starts five masters, which end with the test.
func StartMasters(t *testing.T) []*redistest.Server {
	t.Helper()
	masters := make([]*redistest.Server, 5)
	for i := range masters {
		masters[i] = StartRedis(t)
	}
	return masters
}

// StartLink starts a link to a server, which ends with the test.
func StartLink(t *testing.T, server *redistest.Server) *faultlink.Link {
	t.Helper()
	link, err := faultlink.New(server.Addr())
	Must(t, err)
	t.Cleanup(func() { NoError(t, link.Close()) })
	return link
}

// StartLinks starts a link to each server.
func StartLinks(t *testing.T, servers []*redistest.Server) []*faultlink.Link {
	t.Helper()
	links := make([]*faultlink.Link, len(servers))
	for i, server := range servers {
		links[i] = StartLink(t, server)
	}
	return links
}

// LinkURLs are the URLs of the servers over these links.
func LinkURLs(links []*faultlink.Link) []string {
	urls := make([]string, len(links))
	for i, link := range links {
		urls[i] = "redis://" + link.Addr()
	}
	return urls
}

// StartProxy starts a proxy before the masters of these URLs, which ends with the test. Its masters
// are patient, unless the arguments have another master-timeout. A test that fails shows its log,
// and no log may tell of an accident.
func StartProxy(t *testing.T, masters []string, args ...string) *harness.Proxy {
	t.Helper()
	return start(t, harness.ProxyOptions{Masters: masters, Args: append(PatientMasters(), args...)})
}

// StartConfigured is StartProxy for a configuration file that says all.
func StartConfigured(t *testing.T, file string) *harness.Proxy {
	t.Helper()
	return start(t, harness.ProxyOptions{Config: file})
}

func start(t *testing.T, opts harness.ProxyOptions) *harness.Proxy {
	t.Helper()
	proxy, err := harness.StartProxy(opts)
	Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the proxy on %s:\n%s", proxy.Addr(), proxy.Log())
		}
		NoError(t, proxy.Close())
		wantSound(t, proxy)
	})
	return proxy
}

// wantSound wants no accident in a proxy's log. There the race detector tells as well, in a binary
// that was built with it.
func wantSound(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	for _, accident := range []string{"a session failed", "panic: ", "DATA RACE"} {
		if strings.Contains(proxy.Log(), accident) {
			t.Errorf("%q in the log of the proxy on %s:\n%s", accident, proxy.Addr(), proxy.Log())
		}
	}
}

// Program is a command of the proxy's program, in an environment without its settings.
func Program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := harness.BuildProxy(t.Context())
	Must(t, err)
	command := exec.Command(program, args...)
	command.Env = Environ()
	return command
}

// LockKeyArgs are the arguments with which a proxy takes lock:* for lock keys, before this
// upstream.
func LockKeyArgs(upstream *redistest.Server) []string {
	return []string{"--lock-keys", "lock:*", "--upstream", upstream.URL()}
}

// patience is a master-timeout with which a busy machine is no fault of a master.
const patience = "5s"

// Environ is the environment of the proxy's commands: without the settings that happen to be set
// where the tests run, and with patience.
func Environ() []string { return append(harness.Environ(), "REDLOCK_MASTER_TIMEOUT="+patience) }

// PatientMasters are the arguments that set it, for proxies that StartProxy does not start.
func PatientMasters() []string { return []string{"--master-timeout", patience} }

// HungMasters are the arguments of tests about masters that do not answer: those are given up soon,
// as they are by default.
func HungMasters() []string { return []string{"--master-timeout", "250ms"} }
