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

// StartRedis starts a redis-server with these arguments. The server is closed when the test ends.
func StartRedis(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	return redistest.New(t, redistest.Options{ExtraArgs: args})
}

// StartReference starts a server with whose replies tests compare the proxy's replies on lock keys.
// It has the installed version, which must be 7.0; masters and upstream may have other versions.
func StartReference(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	return redistest.New(t, redistest.Options{Version: redistest.InstalledVersion, ExtraArgs: args})
}

// StartSameVersion starts a server of the same version as the given server, so that the new server
// can read the files of the given one.
func StartSameVersion(t *testing.T, server *redistest.Server, args ...string) *redistest.Server {
	t.Helper()
	return redistest.New(t, redistest.Options{Version: server.Version(), ExtraArgs: args})
}

// StartReplica starts a replica of a server, and returns when the replica is in sync.
func StartReplica(t *testing.T, master *redistest.Server) *redistest.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr())
	Must(t, err)
	replica := StartSameVersion(t, master, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
	Eventually(t, func() error { return CheckInSync(replica) })
	return replica
}

// CheckInSync returns an error unless a replica is in sync with its master.
func CheckInSync(replica *redistest.Server) error {
	info, err := QueryDatabase(replica, "0", "INFO", "replication")
	if text, _ := info.(string); err == nil && !strings.Contains(text, "master_link_status:up") {
		err = fmt.Errorf("the replica is not in sync: %s", text)
	}
	return err
}

// NewClock returns a clock for servers (redistest.Options). It shows the machine's time until it is
// set.
func NewClock(t *testing.T) *redistest.Clock {
	t.Helper()
	clock, err := redistest.NewClock(t.TempDir())
	if errors.Is(err, redistest.ErrNoFakeTime) {
		redistest.SkipMissing(t, err.Error())
	}
	Must(t, err)
	return clock
}

// StartMasters starts five masters, which are closed when the test ends.
func StartMasters(t *testing.T) []*redistest.Server {
	t.Helper()
	masters := make([]*redistest.Server, 5)
	for i := range masters {
		masters[i] = StartRedis(t)
	}
	return masters
}

// StartLink starts a link to a server, which is closed when the test ends.
func StartLink(t *testing.T, server interface{ Addr() string }) *faultlink.Link {
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

// LinkURLs returns the URLs of the servers over these links.
func LinkURLs(links []*faultlink.Link) []string {
	urls := make([]string, len(links))
	for i, link := range links {
		urls[i] = "redis://" + link.Addr()
	}
	return urls
}

// StartProxy starts a proxy with these masters. The proxy is closed when the test ends. It has a
// long master-timeout unless the arguments set one. If the test fails, StartProxy prints the
// proxy's log. It fails the test if the log has a panic, a failed session or a data race.
func StartProxy(t *testing.T, masters []string, args ...string) *harness.Proxy {
	t.Helper()
	return startProxy(t, harness.ProxyOptions{Masters: masters, Args: append(LongMasterTimeoutArgs(), args...)})
}

// StartConfigured starts a proxy like StartProxy, but with a complete configuration file and
// without the long master-timeout.
func StartConfigured(t *testing.T, file string) *harness.Proxy {
	t.Helper()
	return startProxy(t, harness.ProxyOptions{Config: file})
}

func startProxy(t *testing.T, opts harness.ProxyOptions) *harness.Proxy {
	t.Helper()
	proxy, err := harness.StartProxy(opts)
	Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the proxy on %s:\n%s", proxy.Addr(), proxy.Log())
		}
		NoError(t, proxy.Close())
		wantNoCrash(t, proxy)
	})
	return proxy
}

// wantNoCrash fails the test if a proxy's log has a panic, a failed session, or a data race, which
// a binary with the race detector reports.
func wantNoCrash(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	for _, text := range []string{"internal error", "panic: ", "DATA RACE"} {
		if strings.Contains(proxy.Log(), text) {
			t.Errorf("%q in the log of the proxy on %s:\n%s", text, proxy.Addr(), proxy.Log())
		}
	}
}

// ProxyCommand returns a command that runs the proxy's program with these arguments, in the
// environment that Environ returns.
func ProxyCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := harness.BuildProxy(t.Context())
	Must(t, err)
	command := exec.Command(program, args...)
	command.Env = Environ()
	return command
}

// LockKeyArgs returns the arguments of a proxy with this upstream and the lock keys lock:*.
func LockKeyArgs(upstream *redistest.Server) []string {
	return []string{"--lock-keys", "lock:*", "--upstream", upstream.URL()}
}

// longMasterTimeout is a master-timeout that a master meets even on a busy machine.
const longMasterTimeout = "5s"

// Environ returns the environment of the proxy's commands. It has no settings from the environment
// of the tests, and a long master-timeout.
func Environ() []string {
	return append(harness.Environ(), "REDLOCK_MASTER_TIMEOUT="+longMasterTimeout)
}

// LongMasterTimeoutArgs returns the arguments for a long master-timeout. StartProxy adds them;
// other ways to start a proxy need them explicitly.
func LongMasterTimeoutArgs() []string { return []string{"--master-timeout", longMasterTimeout} }

// DefaultMasterTimeoutArgs returns the arguments for the default master-timeout, for tests with
// masters that do not answer.
func DefaultMasterTimeoutArgs() []string { return []string{"--master-timeout", "250ms"} }
