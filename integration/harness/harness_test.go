package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// waitLimit is how long a test waits for what must come; silence is how long it watches for what must not.
const (
	waitLimit = 5 * time.Second
	silence   = 50 * time.Millisecond
)

func startRedis(t *testing.T, opts RedisOptions) *Redis {
	t.Helper()
	server, err := StartRedis(opts)
	if errors.Is(err, ErrNoRedis) {
		Absent(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func dial(t *testing.T, addr string) *Client {
	t.Helper()
	client, err := Dial(addr, waitLimit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func want(t *testing.T, client *Client, reply any, command ...string) {
	t.Helper()
	got, err := client.Do(command...)
	if err != nil || got != reply {
		t.Fatalf("%v: %#v, %v; want %#v", command, got, err, reply)
	}
}

func wantSilence(t *testing.T, client *Client) {
	t.Helper()
	client.SetTimeout(silence)
	defer client.SetTimeout(waitLimit)
	if reply, err := client.Receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %#v, %v; want silence", reply, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRedisRestartForgets(t *testing.T) {
	server := startRedis(t, RedisOptions{})
	addr := server.Addr()
	want(t, dial(t, addr), "OK", "SET", "k", "v")
	check(t, server.Restart())
	if server.Addr() != addr || server.URL() != "redis://"+addr {
		t.Fatalf("%s, %s after the restart; want %s", server.Addr(), server.URL(), addr)
	}
	want(t, dial(t, addr), nil, "GET", "k")
}

func TestRedisPauseAndContinue(t *testing.T) {
	server := startRedis(t, RedisOptions{})
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
	server := startRedis(t, RedisOptions{})
	check(t, server.Pause())
	check(t, server.Kill())
	check(t, server.Kill())
	if _, err := Dial(server.Addr(), waitLimit); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial after Kill: %v; want it refused", err)
	}
}

func TestRedisExtraArgs(t *testing.T) {
	server := startRedis(t, RedisOptions{ExtraArgs: []string{"--requirepass", "secret"}})
	client := dial(t, server.Addr())
	if reply, err := client.Do("GET", "k"); err != nil || !strings.HasPrefix(reply.(RespError).Error(), "NOAUTH") {
		t.Fatalf("%v, %v; want NOAUTH", reply, err)
	}
	want(t, client, "OK", "AUTH", "secret")
}

func TestRedisWrongArgsTellTheLog(t *testing.T) {
	startRedis(t, RedisOptions{}) // skips without redis-server
	_, err := StartRedis(RedisOptions{ExtraArgs: []string{"--no-such-setting", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Fatalf("%v; want an error that names the setting", err)
	}
}

func TestRedisCloseLeavesNothing(t *testing.T) {
	server := startRedis(t, RedisOptions{})
	dir, pid := server.dir, server.process.pid()
	check(t, server.Close())
	check(t, server.Close())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if alive(pid) {
		t.Errorf("process %d is still there", pid)
	}
	if err := server.Restart(); !errors.Is(err, errClosed) {
		t.Errorf("Restart after Close: %v; want %v", err, errClosed)
	}
}

func TestStartMastersAreIndependent(t *testing.T) {
	startRedis(t, RedisOptions{})
	masters, err := StartMasters(3)
	check(t, err)
	defer func() { check(t, CloseAll(masters)) }()
	want(t, dial(t, masters[0].Addr()), "OK", "SET", "k", "v")
	for _, other := range masters[1:] {
		want(t, dial(t, other.Addr()), nil, "GET", "k")
	}
}

func TestProcessCosts(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: CPU and RSS need /proc (Linux): %v", err)
	}
	server := startRedis(t, RedisOptions{})
	client := dial(t, server.Addr())
	before, err := server.CPU()
	check(t, err)
	want(t, client, nil, "EVAL", "for i = 1, 5000000 do local x = i * i end return nil", "0")
	after, err := server.CPU()
	check(t, err)
	if spent := after - before; spent < 10*time.Millisecond || spent > waitLimit {
		t.Errorf("5 million turns took %v of CPU", spent)
	}
	if rss, err := server.RSS(); err != nil || rss < 1<<20 || rss > 1<<30 {
		t.Errorf("redis-server takes %d bytes, %v", rss, err)
	}
}

func TestParseProcStat(t *testing.T) {
	const tail = " S 1 2 3 4 5 6 7 8 9 10 150 25 13 14 15 16 17 18 19 20 3 22"
	for _, name := range []string{"redis-server", "a b) R 9", "((", ""} {
		stat, err := parseProcStat("12 (" + name + ")" + tail)
		if err != nil || stat.state != "S" || stat.cpu != 1750*time.Millisecond || stat.rss != 3*int64(os.Getpagesize()) {
			t.Errorf("%q: %+v, %v", name, stat, err)
		}
	}
	for _, line := range []string{"", "12 (x) S 1", "12 (x)" + strings.Replace(tail, "150", "x", 1)} {
		if stat, err := parseProcStat(line); err == nil {
			t.Errorf("%q: %+v; want an error", line, stat)
		}
	}
}

func TestRemoveOldBuilds(t *testing.T) {
	parent := t.TempDir()
	dead, err := startProcess("/bin/true", nil, nil)
	check(t, err)
	<-dead.done
	ours := filepath.Join(parent, buildDirPrefix+strconv.Itoa(os.Getpid()))
	foreign := filepath.Join(parent, buildDirPrefix+"notes")
	old := filepath.Join(parent, buildDirPrefix+strconv.Itoa(dead.pid()))
	for _, dir := range []string{ours, foreign, old} {
		check(t, os.Mkdir(dir, 0o700))
	}
	removeOldBuilds(parent)
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	check(t, err)
	if len(left) != 2 || left[0] != ours || left[1] != foreign {
		t.Errorf("left: %v; want %v", left, []string{ours, foreign})
	}
}
