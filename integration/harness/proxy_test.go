package harness

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/internal/process"
	"redlock-proxy/internal/redistest"
)

// writeScript returns the path of a shell script to run in place of the proxy, with its arguments.
func writeScript(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "proxy.sh")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
	return path
}

// TestRealProxy builds the program, starts it on real masters, takes a lock and stops it.
func TestRealProxy(t *testing.T) {
	redistest.SkipShort(t)
	redistest.New(t, redistest.Options{}) // skips without redis-server
	t.Setenv(programEnv, "")
	masters, err := redistest.StartMasters(3)
	must(t, err)
	defer func() { must(t, redistest.CloseAll(masters)) }()
	defer func() { must(t, RemoveBuild()) }()
	proxy, err := StartProxy(ProxyOptions{Masters: redistest.URLs(masters), Args: longTimeoutArgs()})
	must(t, err)
	defer proxy.Close()
	client := dial(t, proxy.Addr())
	if validity, ok := replyOf(client.Do("LOCK", "k", "t", "PX", "10000")).(int64); !ok || validity < 9000 ||
		validity > 10000 {
		t.Errorf("LOCK: %v; want almost 10000", validity)
	}
	for _, master := range masters { // the last master may store the lock after the reply
		onMaster, held := dial(t, master.Addr()), any("")
		for end := time.Now().Add(waitLimit); held != "t" && time.Now().Before(end); time.Sleep(time.Millisecond) {
			held = HeldToken(replyOf(onMaster.Do("GET", "k")))
		}
		if held != "t" {
			t.Errorf("a master holds k for %v; want t", held)
		}
	}
	wantReply(t, client, int64(1), "UNLOCK", "k", "t")
	if rss, err := proxy.RSS(); err != nil && runtime.GOOS == "linux" || rss > 1<<30 {
		t.Errorf("the proxy takes %d bytes, %v", rss, err)
	}
	must(t, client.Close())
	must(t, proxy.Signal(syscall.SIGTERM))
	if code, err := proxy.Wait(waitLimit); code != 0 || err != nil {
		t.Errorf("exit code %d, %v; want 0; log:\n%s", code, err, proxy.Log())
	}
}

func replyOf(reply any, _ error) any { return reply }

func TestStartProxyAddress(t *testing.T) {
	t.Setenv("REDLOCK_MAX_TTL", "1s")
	program := writeScript(t, `
echo "args: $*, $REDLOCK_MAX_TTL, $REDLOCK_KEY_PREFIX" >&2
echo 'time=2030-01-02T03:04:05Z level=INFO msg="ready" listen=127.0.0.1:4711 masters=2' >&2
trap 'echo drained >&2; exit 7' TERM
while :; do sleep 0.01; done`)
	proxy, err := StartProxy(ProxyOptions{
		Binary: program, Masters: []string{"redis://a:1", "redis://b:2"}, Args: []string{"--log-level", "debug"},
		Env: []string{"REDLOCK_KEY_PREFIX=p:"},
	})
	must(t, err)
	defer proxy.Close()
	const args = "args: serve --listen 127.0.0.1:0 --fresh-start --master redis://a:1 --master redis://b:2 --log-level debug, , p:\n"
	if proxy.Addr() != "127.0.0.1:4711" || !strings.HasPrefix(proxy.Log(), args) {
		t.Errorf("address %s, log:\n%s\nwant it to begin with %s", proxy.Addr(), proxy.Log(), args)
	}
	if _, err := proxy.Wait(quietTime); !errors.Is(err, process.ErrStillRunning) {
		t.Errorf("Wait: %v; want %v", err, process.ErrStillRunning)
	}
	must(t, proxy.Signal(syscall.SIGTERM))
	if code, err := proxy.Wait(waitLimit); code != 7 || err != nil {
		t.Errorf("exit code %d, %v; want 7", code, err)
	}
	if line, err := proxy.WaitLog("drained", waitLimit); line != "drained" || err != nil {
		t.Errorf("%q, %v; want the last line", line, err)
	}
}

func TestStartProxyErrors(t *testing.T) {
	for name, body := range map[string]string{
		"no such master":            `echo "no such master" >&2; exit 1`,
		"no such line within 3s":    `exec sleep 60`,
		ErrNoListen.Error():         `echo 'level=INFO msg=ready' >&2; exec sleep 60`,
		"without such a line":       `exit 0`,
		"no such file or directory": "",
	} {
		program := "/no/such/program"
		if body != "" {
			program = writeScript(t, body)
		}
		_, err := StartProxy(ProxyOptions{Binary: program, StartTimeout: 3 * time.Second})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v; want %q", body, err, name)
		}
	}
}

func TestReadyLine(t *testing.T) {
	for line, addr := range map[string]string{
		`time=t level=INFO msg="serving clients" listen=127.0.0.1:7`:         "127.0.0.1:7",
		`time=t level=INFO msg=ready listen=127.0.0.1:1`:                     "127.0.0.1:1",
		`time=t level=INFO msg="ready" masters=5 listen="[::1]:2"`:           "[::1]:2",
		`{"time":"t","level":"INFO","msg":"ready","listen":"127.0.0.1:3"}`:   "127.0.0.1:3",
		`{"time":"t","listen":"127.0.0.1:4","level":"INFO","msg":"ready"}`:   "127.0.0.1:4",
		`time=t level=INFO msg="ready soon" listen=127.0.0.1:5`:              "",
		`time=t level=INFO msg=already listen=127.0.0.1:6`:                   "",
		`time=t level=INFO msg="master is down" cause="msg=readyish listen"`: "",
	} {
		got := ""
		if readyPattern.MatchString(line) {
			got, _ = listenAddr(line)
		}
		if got != addr {
			t.Errorf("%s: %q; want %q", line, got, addr)
		}
	}
}

func TestEnvironmentOfTheProxy(t *testing.T) {
	t.Setenv("REDLOCK_LISTEN", "x")
	t.Setenv("HARNESS_TEST", "y")
	opts := ProxyOptions{Env: []string{"REDLOCK_MASTER=z"}}
	env := opts.environment()
	for entry, in := range map[string]bool{"REDLOCK_LISTEN=x": false, "HARNESS_TEST=y": true, "REDLOCK_MASTER=z": true} {
		if slices.Contains(env, entry) != in {
			t.Errorf("%s in the environment: %v", entry, !in)
		}
	}
}
