package redistest

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/internal/process"
)

func TestRestartLosesData(t *testing.T) {
	server := New(t, Options{})
	addr := server.Addr()
	want(t, dial(t, addr), "OK", "SET", "k", "v")
	check(t, server.Restart())
	if server.Addr() != addr || server.URL() != "redis://"+addr {
		t.Fatalf("%s, %s after the restart; want %s", server.Addr(), server.URL(), addr)
	}
	want(t, dial(t, addr), nil, "GET", "k")
}

func TestRedisPauseAndContinue(t *testing.T) {
	server := New(t, Options{})
	client := dial(t, server.Addr())
	want(t, client, "PONG", "PING")
	check(t, server.Pause())
	check(t, client.Send(AppendCommand(nil, "SET", "k", "v")))
	wantSilence(t, client)
	check(t, server.Continue())
	if reply, err := client.Receive(); err != nil || reply != "OK" {
		t.Fatalf("%v, %v after Continue; want OK", reply, err)
	}
}

func TestRedisKillRefuses(t *testing.T) {
	server := New(t, Options{})
	check(t, server.Pause())
	check(t, server.Kill())
	check(t, server.Kill())
	if _, err := Dial(server.Addr(), waitLimit); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial after Kill: %v; want it refused", err)
	}
}

func TestRedisExtraArgs(t *testing.T) {
	server := New(t, Options{ExtraArgs: []string{"--requirepass", "secret"}})
	client := dial(t, server.Addr())
	if reply, err := client.Do("GET", "k"); err != nil || !strings.HasPrefix(reply.(RespError).Error(), "NOAUTH") {
		t.Fatalf("%v, %v; want NOAUTH", reply, err)
	}
	want(t, client, "OK", "AUTH", "secret")
}

func TestStartErrorContainsLog(t *testing.T) {
	New(t, Options{}) // skips without redis-server
	_, err := Start(Options{ExtraArgs: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Fatalf("%v; want an error that names the setting", err)
	}
}

func TestCloseRemovesDirAndProcess(t *testing.T) {
	server := New(t, Options{})
	dir, pid := server.dir, server.process.PID()
	check(t, server.Close())
	check(t, server.Close())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if process.Alive(pid) {
		t.Errorf("process %d is still there", pid)
	}
	if err := server.Restart(); !errors.Is(err, errClosed) {
		t.Errorf("Restart after Close: %v; want %v", err, errClosed)
	}
}

func TestStartMastersIndependence(t *testing.T) {
	New(t, Options{})
	masters, err := StartMasters(3)
	check(t, err)
	defer func() { check(t, CloseAll(masters)) }()
	want(t, dial(t, masters[0].Addr()), "OK", "SET", "k", "v")
	for _, other := range masters[1:] {
		want(t, dial(t, other.Addr()), nil, "GET", "k")
	}
}

func TestProcessUsage(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: CPU and RSS need /proc (Linux): %v", err)
	}
	server := New(t, Options{})
	client := dial(t, server.Addr())
	before, err := server.CPU()
	check(t, err)
	want(t, client, nil, "EVAL", "for i = 1, 5000000 do local x = i * i end return nil", "0")
	after, err := server.CPU()
	check(t, err)
	if used := after - before; used < 10*time.Millisecond || used > 5*time.Second {
		t.Errorf("5 million turns took %v of CPU", used)
	}
	if rss, err := server.RSS(); err != nil || rss < 1<<20 || rss > 1<<30 {
		t.Errorf("redis-server takes %d bytes, %v", rss, err)
	}
}
