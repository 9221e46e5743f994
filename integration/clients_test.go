//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// clientTimeout bounds one client program; on an idle machine each takes less than a second.
const clientTimeout = time.Minute

// everyClient names the checks that each client program must report as passed.
func everyClient() []string {
	return []string{
		"ping", "lock", "held", "unlock-wrong-token", "extend", "unlock", "extend-after-unlock", "made-token", "block-runs-out",
		"block-served", "error-expire", "error-arity", "error-unknown", "select", "pipeline", "name",
	}
}

// A clientProgram is a program in a folder of its own that drives the proxy with the library of one language.
type clientProgram struct {
	name     string
	programs []string // interpreters to try; the distribution's own first, as its libraries belong to it
	probe    []string // arguments with which an interpreter tells whether the library is there
	script   string
	more     []string // checks beside everyClient
	install  string
}

func clientPrograms() []clientProgram {
	return []clientProgram{
		{name: "python", programs: []string{"/usr/bin/python3", "python3"}, probe: []string{"-c", "import redis"},
			script: "python/lock.py", install: "apt-get install python3-redis"},
		{name: "ruby", programs: []string{"/usr/bin/ruby", "ruby"}, probe: []string{"-e", `require "redis"`},
			script: "ruby/lock.rb", install: "apt-get install ruby-redis"},
		{name: "php", programs: []string{"/usr/bin/php", "php"}, probe: []string{"-r", `exit(extension_loaded("redis") ? 0 : 1);`},
			script: "php/lock.php", install: "apt-get install php-cli php-redis"},
		{name: "node", programs: []string{"/usr/bin/node", "node"}, probe: []string{"-e", `require("redis")`},
			script: "node/lock.js", install: "apt-get install nodejs node-redis"},
		{name: "redis-cli", programs: []string{"bash"}, probe: []string{"-c", "command -v redis-cli"},
			script: "rediscli/lock.sh", install: "apt-get install redis-tools", more: []string{"resp3", "command-docs"}},
	}
}

// TestClients runs each client library as it connects by default.
func TestClients(t *testing.T) {
	proxy, _ := startFive(t)
	runClients(t, proxy)
}

func runClients(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	for _, c := range clientPrograms() {
		t.Run(c.name, func(t *testing.T) {
			interpreter := c.interpreter(t)
			passes(t, proxy, append(everyClient(), c.more...), interpreter, c.script)
		})
	}
	t.Run("go-redis", func(t *testing.T) {
		passes(t, proxy, append(everyClient(), "resp3"), buildGoClient(t))
	})
}

// TestMasterKeys looks at the masters behind the proxy: the key and the value are the client's own.
func TestMasterKeys(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		harness.Absent(t, "redis-cli: apt-get install redis-tools")
	}
	proxy, masters := startFive(t)
	locked := redisCLI(t, proxy, "LOCK", "k", "t", "PX", "10000")
	if ms, err := strconv.Atoi(locked); err != nil || ms <= 9000 || ms > 10000 {
		t.Fatalf("LOCK k t PX 10000: expected a validity in (9000..10000], got %q", locked)
	}
	for _, master := range masters {
		settles(t, func() error { return holds(master, "k", "t") })
	}
	if unlocked := redisCLI(t, proxy, "UNLOCK", "k", "t"); unlocked != "1" {
		t.Fatalf("UNLOCK k t: expected 1, got %q", unlocked)
	}
	for _, master := range masters {
		settles(t, func() error { return lacks(master, "k") })
	}
}

// startFive starts five masters and a proxy in front of them, which end with the test.
func startFive(t *testing.T) (*harness.Proxy, []*harness.Redis) {
	t.Helper()
	masters, err := harness.StartMasters(5)
	if errors.Is(err, harness.ErrNoRedis) {
		harness.Absent(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, harness.CloseAll(masters)) })
	proxy, err := harness.StartProxy(harness.ProxyOptions{Masters: harness.URLs(masters)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, proxy.Close()) })
	return proxy, masters
}

func closes(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// interpreter returns the first program that has the client's library.
func (c clientProgram) interpreter(t *testing.T) string {
	t.Helper()
	for _, program := range c.programs {
		probe := exec.Command(program, c.probe...)
		probe.Env = clientEnv()
		if probe.Run() == nil {
			return program
		}
	}
	harness.Absent(t, fmt.Sprintf("the client %s: %s", c.name, c.install))
	return ""
}

// clientEnv tells node where Debian keeps its modules, which a node from elsewhere does not know.
func clientEnv() []string {
	path := "/usr/share/nodejs"
	if own := os.Getenv("NODE_PATH"); own != "" {
		path += string(os.PathListSeparator) + own
	}
	return append(os.Environ(), "NODE_PATH="+path)
}

func buildGoClient(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "golang")
	if output, err := exec.Command("go", "build", "-o", binary, "./golang").CombinedOutput(); err != nil {
		t.Fatalf("go build ./golang: %v\n%s", err, output)
	}
	return binary
}

// passes runs a client program with HOST PORT behind its arguments, and wants the line "ok NAME" of each check.
func passes(t *testing.T, proxy *harness.Proxy, checks []string, command ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	output, err := runClient(append(command, host, port)...)
	if err != nil {
		t.Fatalf("%v: %v\n%s\nThe proxy's log:\n%s", command, err, output, proxy.Log())
	}
	lines := strings.Split(output, "\n")
	for _, check := range checks {
		if !slices.Contains(lines, "ok "+check) {
			t.Fatalf("%v did not report check %q; its output:\n%s", command, check, output)
		}
	}
	t.Logf("%d checks passed: %s", len(checks), strings.Join(checks, " "))
}

// runClient returns what a program writes to stdout and stderr.
func runClient(command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = clientEnv()
	cmd.WaitDelay = time.Second // a child of the program may still hold the pipe
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func redisCLI(t *testing.T, proxy *harness.Proxy, args ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	output, err := runClient(append([]string{"redis-cli", "-h", host, "-p", port}, args...)...)
	if err != nil {
		t.Fatalf("redis-cli %v: %v\n%s", args, err, output)
	}
	return strings.TrimSpace(output)
}

// holds wants the key on one master with this value and about ten seconds to live.
func holds(master *harness.Redis, key, token string) error {
	value, ttl, err := peek(master, key)
	if err != nil {
		return err
	}
	if ms, ok := ttl.(int64); value != any(token) || !ok || ms <= 9000 || ms > 10000 {
		return fmt.Errorf("master %s: expected %s = %s with a PTTL in (9000..10000], got %v with %v", master.Addr(), key, token, value, ttl)
	}
	return nil
}

// lacks wants no such key on one master.
func lacks(master *harness.Redis, key string) error {
	value, _, err := peek(master, key)
	if err == nil && value != nil {
		err = fmt.Errorf("master %s: expected no key %s, got %v", master.Addr(), key, value)
	}
	return err
}

func peek(master *harness.Redis, key string) (value, ttl any, err error) {
	conn, err := harness.Dial(master.Addr(), time.Second)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	value, valueErr := conn.Do("GET", key)
	ttl, ttlErr := conn.Do("PTTL", key)
	return value, ttl, errors.Join(valueErr, ttlErr)
}

// settles asks again for a while: the proxy answers at a majority, and the other masters follow.
func settles(t *testing.T, condition func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err = condition(); err == nil {
			return
		}
	}
	t.Fatal(err)
}
