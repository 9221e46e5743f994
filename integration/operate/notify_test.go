//go:build integration && linux

package operate

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// manager receives the notifications of a process under systemd, by sd_notify(3).
type manager struct{ conn *net.UnixConn }

func startManager(t *testing.T) manager {
	t.Helper()
	addr := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	conn, err := net.ListenUnixgram("unixgram", addr)
	kit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // a test may have closed it
	return manager{conn}
}

// env returns the environment of a process that notifies this manager; watchdog is the time limit
// in microseconds, or empty.
func (m manager) env(watchdog string) []string {
	env := []string{"NOTIFY_SOCKET=" + m.conn.LocalAddr().String()}
	if watchdog != "" {
		env = append(env, "WATCHDOG_USEC="+watchdog)
	}
	return env
}

// next returns the first line of the next notification, or an error if there is none in time.
func (m manager) next(timeout time.Duration) (string, error) {
	buffer := make([]byte, 4096)
	_ = m.conn.SetReadDeadline(time.Now().Add(timeout))
	n, err := m.conn.Read(buffer)
	line, _, _ := strings.Cut(string(buffer[:n]), "\n")
	return line, err
}

// wantNext fails the test unless state is the next notification.
func (m manager) wantNext(t *testing.T, state string) {
	t.Helper()
	if got, err := m.next(kit.WaitLimit); got != state {
		t.Fatalf("the manager is told %q, %v, want %q", got, err, state)
	}
}

// unreadStates returns all unread notifications.
func (m manager) unreadStates() (states []string) {
	for {
		state, err := m.next(time.Millisecond)
		if err != nil {
			return states
		}
		states = append(states, state)
	}
}

// startManagedProxy starts a proxy that notifies a manager.
func startManagedProxy(t *testing.T, m manager, watchdog string, args ...string) *harness.Proxy {
	t.Helper()
	proxy, err := harness.StartProxy(harness.ProxyOptions{Masters: redistest.URLs(kit.StartMasters(t)), Args: args,
		Env: m.env(watchdog)})
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, proxy.Close()) })
	return proxy
}

// TestNotify checks that systemd is notified when the proxy serves clients, and when it drains.
func TestNotify(t *testing.T) {
	t.Parallel()
	m := startManager(t)
	proxy := startManagedProxy(t, m, "", "--drain-timeout", "1m")
	m.wantNext(t, "READY=1")
	busyClient := kit.ConnectWithoutReading(t, proxy)
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	m.wantNext(t, "STOPPING=1")
	kit.Must(t, busyClient.Close()) // ends the drain
	wantExit(t, proxy, 0, kit.WaitLimit)
	if unread := m.unreadStates(); unread != nil {
		t.Errorf("the manager is also told %q, and asked for no watchdog", unread)
	}
}

// TestNotifyWithoutManager checks that the proxy serves even if the manager is missing, or a
// variable is invalid.
func TestNotifyWithoutManager(t *testing.T) {
	t.Parallel()
	m := startManager(t)
	env := m.env("many")
	kit.Must(t, m.conn.Close())
	proxy, err := harness.StartProxy(harness.ProxyOptions{Masters: redistest.URLs(kit.StartMasters(t)),
		Args: kit.LongMasterTimeoutArgs(), Env: env})
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, proxy.Close()) })
	kit.WantGrant(t, kit.Connect(t, proxy), "LOCK", "k", "holder", "PX", "60000")
	for _, text := range []string{"systemd notification failed", "watchdog is not notified"} {
		if _, err := proxy.WaitLog(text, kit.WaitLimit); err != nil {
			t.Error(err)
		}
	}
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	wantExit(t, proxy, 0, kit.WaitLimit)
}

// TestNotifyFailedStart checks that a proxy that cannot serve is never ready.
func TestNotifyFailedStart(t *testing.T) {
	t.Parallel()
	m := startManager(t)
	got := runProxyWith(t, m.env("1000000"), "serve", "--listen", "192.0.2.1:1", "--master", "redis://127.0.0.1:1")
	if unread := m.unreadStates(); got.code != 1 || unread != nil {
		t.Errorf("got %+v, and the manager is told %q, want 1 and nothing", got, unread)
	}
}

// TestWatchdog checks that the proxy pings the watchdog, even without a quorum and while it drains.
// It sends no pings if it cannot accept clients.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	m := startManager(t)
	proxy := startManagedProxy(t, m, "400000", "--drain-timeout", "1m", "--max-clients", "1")
	for _, state := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		m.wantNext(t, state)
	}
	holder := connectOnlyClient(t, proxy) // from now on the proxy is full
	m.unreadStates()
	m.wantNext(t, "WATCHDOG=1")

	before := limitDescriptors(t, proxy, 3)
	_, err := proxy.WaitLog("the proxy does not answer its own health check", kit.WaitLimit)
	kit.Must(t, err)
	m.unreadStates()
	if state, err := m.next(time.Second); err == nil {
		t.Errorf("the manager is told %q of a proxy that can take no clients", state)
	}
	limitDescriptors(t, proxy, before)
	m.wantNext(t, "WATCHDOG=1")
	_, err = proxy.WaitLog("the proxy answers its own health check again", kit.WaitLimit)
	kit.Must(t, err)

	kit.Must(t, holder.WriteUntilBlocked(redistest.AppendCommand(nil, "ECHO", strings.Repeat("x", 60_000))))
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	for state := ""; state != "STOPPING=1"; {
		state, err = m.next(kit.WaitLimit)
		kit.Must(t, err)
	}
	m.wantNext(t, "WATCHDOG=1")
	m.wantNext(t, "WATCHDOG=1")
	kit.Must(t, holder.Close())
	wantExit(t, proxy, 0, kit.WaitLimit)
	if strings.Count(proxy.Log(), "the proxy does not answer its own health check") != 1 {
		t.Errorf("it is not said once that it does not answer itself:\n%s", proxy.Log())
	}
}

// TestWatchdogOfDifferentProcess checks that the proxy sends no pings if the watchdog is for
// another process.
func TestWatchdogOfDifferentProcess(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	m := startManager(t)
	proxy, err := harness.StartProxy(harness.ProxyOptions{Masters: redistest.URLs(kit.StartMasters(t)),
		Env: append(m.env("20000"), "WATCHDOG_PID=1")})
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, proxy.Close()) })
	m.wantNext(t, "READY=1")
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	m.wantNext(t, "STOPPING=1")
}

// connectOnlyClient connects to a proxy with room for one client, and takes the lock k. It tries
// repeatedly, because the proxy's own probe may briefly take the only place.
func connectOnlyClient(t *testing.T, proxy *harness.Proxy) (holder *redistest.Client) {
	t.Helper()
	kit.Eventually(t, func() (err error) {
		holder = kit.Connect(t, proxy)
		if err = holder.Send(redistest.AppendCommand(nil, "LOCK", "k", "holder", "PX", "60000")); err != nil {
			return err
		}
		reply, err := holder.Receive()
		if _, granted := reply.(int64); !granted {
			err = errors.Join(fmt.Errorf("got %v", reply), err)
		}
		return err
	})
	return holder
}

// limitDescriptors limits the open descriptors of a running proxy, and returns the earlier limit.
func limitDescriptors(t *testing.T, proxy *harness.Proxy, limit uint64) (formerLimit uint64) {
	t.Helper()
	var rlimit unix.Rlimit
	kit.Must(t, unix.Prlimit(proxy.PID(), unix.RLIMIT_NOFILE, nil, &rlimit))
	formerLimit = rlimit.Cur
	rlimit.Cur = limit
	kit.Must(t, unix.Prlimit(proxy.PID(), unix.RLIMIT_NOFILE, &rlimit, nil))
	return formerLimit
}

// TestNotifyReload checks that systemd is notified when a reload of the configuration begins and
// when it ends.
func TestNotifyReload(t *testing.T) {
	t.Parallel()
	m := startManager(t)
	proxy := startManagedProxy(t, m, "")
	m.wantNext(t, "READY=1")
	for range 2 {
		kit.Must(t, proxy.Signal(syscall.SIGHUP))
		m.wantNext(t, "RELOADING=1")
		m.wantNext(t, "READY=1")
	}
}
