//go:build integration

package relay

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/clients"
	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// relay is a redis-server and a proxy with this server as its upstream.
type relay struct {
	upstream *redistest.Server
	proxy    *harness.Proxy
}

// startRelay starts a relay, with masters for the proxy's locks, until the test ends.
func startRelay(t *testing.T) *relay {
	t.Helper()
	// With a delay of 0, a replica does not wait for further replicas.
	upstream := kit.StartRedis(t, "--repl-diskless-sync-delay", "0")
	return &relay{upstream, kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--upstream", upstream.URL())}
}

// wantSame calls run with the server, and then with the proxy. It fails the test unless both calls
// return the same text.
func (r *relay) wantSame(t *testing.T, run func(addr string) string) {
	t.Helper()
	want := run(r.upstream.Addr())
	if got := run(r.proxy.Addr()); got != want {
		t.Errorf("through the proxy:\n%s\ndirect:\n%s", got, want)
	}
}

// dialUpstream opens a direct connection to the server.
func (r *relay) dialUpstream(t *testing.T) *redistest.Client {
	t.Helper()
	client, err := redistest.Dial(r.upstream.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// toolCommand returns a command that runs one of Redis' own tools with an address.
func toolCommand(t *testing.T, ctx context.Context, name, addr string, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		redistest.SkipMissing(t, name+": apt-get install redis-tools")
	}
	host, port, err := net.SplitHostPort(addr)
	kit.Must(t, err)
	cmd := exec.CommandContext(ctx, name, append([]string{"-h", host, "-p", port}, args...)...)
	cmd.WaitDelay = time.Second
	return cmd
}

// output runs a tool, and returns its output. It fails the test if the tool fails.
func output(t *testing.T, name, addr string, stdin io.Reader, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clients.ProgramTimeout)
	defer cancel()
	cmd := toolCommand(t, ctx, name, addr, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, &stdout, &stderr)
	}
	return stdout.String()
}

// TestRelayRedisBenchmark runs all default tests of redis-benchmark. redis-benchmark stops at the
// first error; the test also checks the server's count of errors. That count includes errors that
// the proxy itself causes. At the start and every 64 connections, the proxy checks that the
// upstream does not lead back to the proxy.
func TestRelayRedisBenchmark(t *testing.T) {
	redistest.SkipShort(t)
	r := startRelay(t)
	tests := benchmarkNames(t, r.upstream.Addr(), "-n", "100")
	for _, depth := range [][]string{{"-P", "1", "-n", "2000"}, {"-P", "100", "-n", "10000"}} {
		if got := benchmarkNames(t, r.proxy.Addr(), depth...); !slices.Equal(got, tests) {
			t.Errorf("%v: got figures of %q, want %q", depth, got, tests)
		}
	}
	redistest.RequireFeature(t, "total_error_replies in INFO", "6.2")
	info, _ := kit.Do(t, r.dialUpstream(t), "INFO", "stats").(string)
	connects, errors := counter(t, info, "total_connections_received"), counter(t, info, "total_error_replies")
	if errors > 2+connects/64 {
		stats, _ := kit.Do(t, r.dialUpstream(t), "INFO", "errorstats", "commandstats").(string)
		t.Errorf("the server answered with %d errors on %d connections:\n%s", errors, connects, stats)
	}
}

// counter returns a number in the text of INFO.
func counter(t *testing.T, info, name string) int {
	t.Helper()
	_, rest, _ := strings.Cut(info, name+":")
	text, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(text)
	kit.Must(t, err)
	return n
}

// benchmarkNames returns the names of the tests for which redis-benchmark printed figures.
func benchmarkNames(t *testing.T, addr string, args ...string) []string {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(output(t, "redis-benchmark", addr, nil,
		append(args, "--csv")...))).ReadAll()
	kit.Must(t, err)
	var names []string
	for _, line := range lines[1:] {
		names = append(names, line[0])
	}
	if len(names) < 18 {
		t.Fatalf("redis-benchmark %v printed figures of %q only", args, names)
	}
	return names
}

// TestRelayPipe sends a million commands without waiting for a reply.
func TestRelayPipe(t *testing.T) {
	redistest.SkipShort(t)
	const commands = 1_000_000
	r := startRelay(t)
	stdout := output(t, "redis-cli", r.proxy.Addr(), newSetCommands(commands), "--pipe")
	if !strings.HasSuffix(stdout, fmt.Sprintf("\nerrors: 0, replies: %d\n", commands)) {
		t.Errorf("redis-cli --pipe: %s", stdout)
	}
	kit.Want(t, r.dialUpstream(t), int64(commands), "DBSIZE")
}

// setCommandReader is a stream of SET commands with different keys, generated while it is read.
type setCommandReader struct {
	number, endNumber int
	unreadBytes       []byte
}

func newSetCommands(n int) *setCommandReader { return &setCommandReader{endNumber: n} }

// Read returns the next bytes of the stream.
func (c *setCommandReader) Read(p []byte) (int, error) {
	if len(c.unreadBytes) == 0 {
		if c.number == c.endNumber {
			return 0, io.EOF
		}
		c.unreadBytes = redistest.AppendCommand(c.unreadBytes[:0], "SET", fmt.Sprintf("key:%d", c.number), "value")
		c.number++
	}
	n := copy(p, c.unreadBytes)
	c.unreadBytes = c.unreadBytes[n:]
	return n, nil
}

// TestRelayHiredis runs the client program in C.
func TestRelayHiredis(t *testing.T) {
	checks := []string{"ping", "binary", "pipeline", "multi", "watch", "lock-in-multi", "pubsub", "blocking", "lock",
		"lock-is-elsewhere"}
	program := clients.BuildWithHiredis(t, "c/relay.c")
	clients.RunChecks(t, startRelay(t).proxy, checks, program)
}

// TestRelayClients runs the programs of TestClients with an upstream.
func TestRelayClients(t *testing.T) {
	redistest.RequireFeature(t, "error with quotes for a command that it does not know, as the programs want it", "7.0")
	clients.RunAll(t, startRelay(t).proxy)
}

// TestRelayClientDisconnects checks that no element is popped for a client that disconnected while
// it waited.
func TestRelayClientDisconnects(t *testing.T) {
	r := startRelay(t)
	control, client := r.dialUpstream(t), kit.Connect(t, r.proxy)
	kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", "queue", "0")))
	kit.AwaitShortly(t, func() error { return checkBlocked(control, 1) })
	kit.Must(t, client.Close())
	kit.AwaitShortly(t, func() error { return checkBlocked(control, 0) })
	kit.Want(t, control, int64(1), "RPUSH", "queue", "job")
	kit.Want(t, control, int64(1), "LLEN", "queue")
}

// checkBlocked returns an error unless the given number of clients are blocked at the server.
func checkBlocked(control *redistest.Client, clients int) error {
	reply, err := control.Do("INFO", "clients")
	if err != nil {
		return err
	}
	if info, _ := reply.(string); !strings.Contains(info, fmt.Sprintf("blocked_clients:%d\r\n", clients)) {
		return fmt.Errorf("expected %d blocked clients, got %q", clients, info)
	}
	return nil
}
