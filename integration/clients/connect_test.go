//go:build integration

package clients

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// connectCase is a library with its default configuration, and the program that uses it.
type connectCase struct {
	library string
	command func(t *testing.T) []string
	// pinned is set if go.mod determines the library's version.
	pinned bool
}

func connectCases() []connectCase {
	script := func(client, file string, args ...string) func(t *testing.T) []string {
		return func(t *testing.T) []string {
			return append([]string{findProgram(t, client).interpreter(t), programPath(file)}, args...)
		}
	}
	golang := func(library string) connectCase {
		return connectCase{library, func(t *testing.T) []string {
			return []string{buildProgram(t, "golang/connect"),
				library}
		}, true}
	}
	return []connectCase{
		golang("go-redis"), golang("rueidis"), golang("valkey-go"),
		{"redis-py", script("python", "python/connect.py"), false}, {"redis-rb", script("ruby", "ruby/connect.rb"), false},
		{"phpredis", script("php", "php/connect.php", "phpredis"), false},
		{"Predis", func(t *testing.T) []string {
			return append([]string{phpLocks(t)[0]}, programPath("php/connect.php"), "predis")
		}, false},
		{"node-redis", script("node", "node/connect.js", "redis"), false},
		{"hiredis", func(t *testing.T) []string { return []string{BuildWithHiredis(t, "c/connect.c")} }, false},
	}
}

// TestConnecting lets each library connect to a Redis and to proxies, and lock. The proxies have an
// upstream and lock keys, only an upstream, or only lock keys. TestConnecting compares the sent and
// the refused commands with docs/compatibility.md. It only logs a version that the page lacks,
// unless go.mod determines it or REDLOCK_TEST_PAGE is set.
func TestConnecting(t *testing.T) {
	redistest.SkipShort(t)
	cases := connectCases()
	// The variable holds a name and a command, for example "ioredis node
	// integration/clients/node/connect.js ioredis".
	if customLibrary := os.Getenv("REDLOCK_TEST_LIBRARY"); customLibrary != "" {
		words := strings.Fields(customLibrary)
		cases = []connectCase{{words[0], func(*testing.T) []string { return words[1:] }, false}}
	}
	page, err := os.ReadFile("../../docs/compatibility.md")
	kit.Must(t, err)
	addrs := startServers(t)
	for _, c := range cases {
		t.Run(c.library, func(t *testing.T) { c.compare(t, addrs, string(page)) })
	}
}

func (c connectCase) compare(t *testing.T, addrs serverAddrs, page string) {
	version, cells := c.runAll(t, addrs)
	if t.Failed() {
		return
	}
	row := regexp.MustCompile(`(?m)^\| ` +
		regexp.QuoteMeta(c.library+" "+version) + ` \| [^|]+ \| (.+) \|$`).FindStringSubmatch(page)
	current := strings.Join(cells, " | ")
	switch {
	case row == nil && (c.pinned || os.Getenv("REDLOCK_TEST_PAGE") != ""):
		t.Errorf("docs/compatibility.md lacks %s %s: %s", c.library, version, current)
	case row == nil:
		t.Logf("docs/compatibility.md lacks %s %s: %s", c.library, version, current)
	case row[1] != current:
		t.Errorf("of %s %s the page has\n%s\nand it is\n%s", c.library, version, row[1], current)
	}
}

// serverAddrs holds the addresses at which a library is tested.
type serverAddrs struct{ redis, proxyWithLockKeys, proxyWithoutLockKeys, lockServer string }

// startServers starts a server, and proxies in three modes, each with its own master.
func startServers(t *testing.T) serverAddrs {
	upstream := kit.StartRedis(t)
	data, lockKeys := []string{"--upstream", upstream.URL()}, []string{"--lock-keys", "lock:*"}
	proxy := func(args ...[]string) string {
		masters := redistest.URLs([]*redistest.Server{kit.StartRedis(t)})
		return kit.StartProxy(t, masters, slices.Concat(args...)...).Addr()
	}
	return serverAddrs{upstream.Addr(), proxy(lockKeys, data), proxy(data), proxy(lockKeys)}
}

// runAll returns the library's version, and the cells of its row in docs/compatibility.md from the
// third cell on.
func (c connectCase) runAll(t *testing.T, addrs serverAddrs) (version string, cells []string) {
	command := c.command(t)
	_, redis, _ := runSteps(t, addrs.redis, "", command)
	version, withLockKeys, steps := runSteps(t, addrs.proxyWithLockKeys, "", command)
	_, upstreamOnly, _ := runSteps(t, addrs.proxyWithoutLockKeys, "", command)
	_, lockServer, _ := runSteps(t, addrs.lockServer, "other", command)
	if fmt.Sprint(upstreamOnly) != fmt.Sprint(redis) {
		t.Errorf("with an upstream alone it said, and was refused, %q; without a proxy %q", upstreamOnly, redis)
	}
	return version, []string{formatCommands(withLockKeys), formatRefused(withLockKeys), formatRefused(upstreamOnly), formatRefused(lockServer),
		strings.Join(steps, ", ")}
}

// runSteps runs the steps of a program at an address. exchanges holds the commands that the program
// sent before its first lock, on the connection that took the lock. If refusedStep is not empty,
// this step must be refused for lack of an upstream. All other steps must succeed.
func runSteps(t *testing.T, addr, refusedStep string, command []string) (version string, exchanges []exchange, steps []string) {
	t.Helper()
	recorder := startRecorder(t, addr)
	host, port, _ := net.SplitHostPort(recorder.addr)
	output, err := run(append(slices.Clone(command), host, port)...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, output)
	}
	for line := range strings.Lines(output) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "version":
			version = result
		case name == refusedStep && strings.Contains(result, "no upstream: "), name != refusedStep && result == "yes":
			steps = append(steps, name)
		default:
			t.Errorf("%v: %s: %s", command, name, result)
		}
	}
	if !slices.Contains(steps, "messages") || version == "" {
		t.Errorf("%v: %s", command, output)
	}
	return version, recorder.commandsBefore("lock:first"), steps
}

// exchange is a command, and the error reply to it.
type exchange struct{ command, errorReply string }

// formatCommands formats all commands.
func formatCommands(exchanges []exchange) string {
	var commands []string
	for _, e := range exchanges {
		commands = append(commands, e.command)
	}
	return formatList(commands)
}

// formatRefused formats the commands with an error reply.
func formatRefused(exchanges []exchange) string {
	var commands []string
	for _, e := range exchanges {
		if e.errorReply != "" {
			commands = append(commands, e.command)
		}
	}
	return formatList(commands)
}

func formatList(commands []string) string {
	if len(commands) == 0 {
		return "nothing"
	}
	return "`" + strings.Join(slices.Compact(commands), "`, `") + "`"
}

// recorder forwards connections to an address, and records their commands and replies.
type recorder struct {
	addr       string
	mu         sync.Mutex
	conns      []*recordedConn
	forwarders sync.WaitGroup
}

// recordedConn holds the commands on one connection, and the replies to them.
type recordedConn struct {
	mu       sync.Mutex
	commands [][]any
	replies  []any
}

func startRecorder(t *testing.T, addr string) *recorder {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	r := &recorder{addr: ln.Addr().String()}
	t.Cleanup(func() { _ = ln.Close(); r.forwarders.Wait() })
	r.forwarders.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				_ = client.Close()
				continue
			}
			r.record(client, server)
		}
	})
	return r
}

func (r *recorder) record(client, server net.Conn) {
	recorded := &recordedConn{}
	r.mu.Lock()
	r.conns = append(r.conns, recorded)
	r.mu.Unlock()
	forward := func(from, to net.Conn, record func(any)) {
		defer client.Close()
		defer server.Close()
		reader := bufio.NewReader(io.TeeReader(from, to))
		for {
			message, err := redistest.ReadReply(reader)
			if err != nil {
				return
			}
			recorded.mu.Lock()
			record(message)
			recorded.mu.Unlock()
		}
	}
	r.forwarders.Go(func() {
		forward(client, server, func(message any) {
			words, _ := message.([]any)
			recorded.commands = append(recorded.commands, words)
		})
	})
	r.forwarders.Go(func() {
		forward(server, client, func(message any) {
			if _, isPush := message.(redistest.Push); !isPush {
				recorded.replies = append(recorded.replies, message)
			}
		})
	})
}

// commandsBefore returns the commands before the first command with the given key, except PING. It
// considers only the first connection with such a command.
func (r *recorder) commandsBefore(key string) (exchanges []exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		conn.mu.Lock()
		end := slices.IndexFunc(conn.commands, func(words []any) bool { return slices.Contains(words, any(key)) })
		if end >= 0 && len(conn.replies) >= end {
			for i, words := range conn.commands[:end] {
				var refusal redistest.RespError
				if err, ok := conn.replies[i].(error); ok {
					errors.As(err, &refusal)
				}
				// Some libraries send PING while they wait.
				if name := commandName(words); name != "PING" {
					exchanges = append(exchanges, exchange{name, string(refusal)})
				}
			}
		}
		conn.mu.Unlock()
		if end >= 0 {
			return exchanges
		}
	}
	return nil
}

// commandName returns the name of a command as in docs/compatibility.md: with the subcommand, or
// for HELLO with the protocol.
func commandName(words []any) string {
	name := strings.ToUpper(fmt.Sprint(words[0]))
	switch {
	case len(words) < 2:
	case name == "HELLO":
		name += " " + fmt.Sprint(words[1])
	case slices.Contains([]string{"CLIENT", "CLUSTER", "COMMAND", "CONFIG", "INFO", "SENTINEL"}, name):
		name += " " + strings.ToUpper(fmt.Sprint(words[1]))
	}
	return name
}
