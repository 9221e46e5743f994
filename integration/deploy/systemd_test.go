//go:build integration

package deploy

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/conf"
	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/process"
	"redlock-proxy/internal/redistest"
)

const (
	unitFile = "deploy/systemd/redlock-proxy.service"
	// installedProgram is the path of the program in the unit.
	installedProgram = "/usr/bin/redlock-proxy"
	// settingsFile is the path of the settings in the unit.
	settingsFile = "/etc/redlock-proxy/config.yaml"
	// maxExposure is the maximum exposure level of the unit. It is the level that systemd-analyze
	// security of systemd 252 reports.
	maxExposure = 1.1
)

// unit is the systemd unit: each setting with its values.
type unit map[string][]string

func readUnit(t *testing.T) unit {
	t.Helper()
	u := unit{}
	for line := range strings.Lines(readFile(t, unitFile)) {
		if name, value, is := strings.Cut(strings.TrimSpace(line), "="); is && !strings.HasPrefix(name, "#") {
			u[name] = append(u[name], value)
		}
	}
	return u
}

// value returns the value of a setting that the unit has exactly once.
func (u unit) value(t *testing.T, name string) string {
	t.Helper()
	if len(u[name]) != 1 {
		t.Fatalf("the unit has %s %q, want one", name, u[name])
	}
	return u[name][0]
}

func (u unit) duration(t *testing.T, name string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(u.value(t, name))
	kit.Must(t, err)
	return d
}

// unitWithProgram writes the unit with the path of an existing program, as systemd requires. It
// returns the path of the unit.
func unitWithProgram(t *testing.T) string {
	t.Helper()
	requireProgram(t, "systemd-analyze")
	text := strings.ReplaceAll(readFile(t, unitFile), installedProgram, buildProxy(t))
	path := filepath.Join(t.TempDir(), filepath.Base(unitFile))
	kit.Must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func buildProxy(t *testing.T) string {
	t.Helper()
	program, err := harness.BuildProxy(t.Context())
	kit.Must(t, err)
	return program
}

// TestUnitVerify checks that systemd reports no problem in the unit.
func TestUnitVerify(t *testing.T) {
	t.Parallel()
	output, err := exec.Command("systemd-analyze", "verify", "--man=no", unitWithProgram(t)).CombinedOutput()
	if err != nil || len(output) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, output)
	}
}

// TestUnitExposure checks that the unit's exposure level is not higher than when it was last
// measured.
func TestUnitExposure(t *testing.T) {
	t.Parallel()
	output, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager",
		unitWithProgram(t)).CombinedOutput()
	kit.Must(t, err)
	level := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(output)
	if level == nil {
		t.Fatalf("systemd-analyze security tells no level:\n%s", output)
	}
	got, err := strconv.ParseFloat(string(level[1]), 64)
	if err != nil || got > maxExposure {
		t.Errorf("exposure %v, %v, want %v at most:\n%s", got, err, maxExposure, output)
	}
}

// TestUnitTimes checks that systemd's time limits are longer than the times that the proxy needs.
func TestUnitTimes(t *testing.T) {
	t.Parallel()
	u, preset := readUnit(t), conf.Default()
	if got := u.duration(t, "TimeoutStopSec"); got < preset.DrainTimeout+5*time.Second {
		t.Errorf("TimeoutStopSec %v is not enough for a drain-timeout of %v", got, preset.DrainTimeout)
	}
	if got := u.duration(t, "TimeoutStartSec"); got < preset.UpstreamTimeout+10*time.Second {
		t.Errorf("TimeoutStartSec %v is not enough for an upstream-timeout of %v", got, preset.UpstreamTimeout)
	}
}

// TestUnitStart acts as systemd does: it starts the program by ExecStart, waits until it is ready,
// reloads changed settings by ExecReload, and stops it.
func TestUnitStart(t *testing.T) {
	t.Parallel()
	u := readUnit(t)
	notifications := listenForNotifications(t)
	settings := "listen: 127.0.0.1:0\nfresh-start: true\nupstream: " + kit.StartRedis(t).URL() + "\nmaster: [" +
		strings.Join(redistest.URLs(kit.StartMasters(t)), ", ") + "]\n"
	file := filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(file, []byte(settings), 0o600))

	words := strings.Fields(u.value(t, "ExecStart"))
	if want := []string{installedProgram, "serve", "--config", settingsFile}; !slices.Equal(words, want) {
		t.Fatalf("ExecStart is %q, want %q", words, want)
	}
	words[3] = file
	proxy, err := process.Start(buildProxy(t), words[1:], environ(
		"NOTIFY_SOCKET="+notifications.LocalAddr().String(),
		"WATCHDOG_USEC="+strconv.FormatInt(u.duration(t, "WatchdogSec").Microseconds()/100, 10)))
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, proxy.Kill()) })
	wantNotification(t, notifications, "READY=1")
	wantNotification(t, notifications, "WATCHDOG=1")

	if reload := u.value(t, "ExecReload"); reload != "/bin/kill -HUP $MAINPID" {
		t.Errorf("ExecReload is %s, which is not tested", reload)
	}
	kit.Must(t, os.WriteFile(file, []byte(settings+"max-ttl: 1h\n"), 0o600))
	kit.Must(t, proxy.Signal(syscall.SIGHUP))
	wantNotification(t, notifications, "RELOADING=1")
	wantNotification(t, notifications, "READY=1")
	wantNotification(t, notifications, "WATCHDOG=1")
	_, err = proxy.WaitLine(func(line string) bool { return strings.Contains(line, "max-ttl") }, kit.WaitLimit)
	kit.Must(t, err)
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	if code, err := proxy.Wait(kit.WaitLimit); code != 0 || err != nil {
		t.Errorf("it ends with %d, %v:\n%s", code, err, proxy.Log())
	}
}

// listenForNotifications returns a socket that receives a process' notifications to systemd.
func listenForNotifications(t *testing.T) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, conn.Close()) })
	return conn
}

// wantNotification fails the test unless the next notification, except watchdog pings, is state.
func wantNotification(t *testing.T, conn *net.UnixConn, state string) {
	t.Helper()
	buffer := make([]byte, 4096)
	kit.Must(t, conn.SetReadDeadline(time.Now().Add(kit.WaitLimit)))
	for {
		n, err := conn.Read(buffer)
		switch got, _, _ := strings.Cut(string(buffer[:n]), "\n"); {
		case got == state:
			return
		case err != nil, got != "WATCHDOG=1":
			t.Fatalf("systemd is told %q, %v, want %q", got, err, state)
		}
	}
}
