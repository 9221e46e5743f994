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

// connecting is a library in its default configuration, and the program that uses it.
type connecting struct {
	library string
	command func(t *testing.T) []string
	// pinned is set if go.mod determines the library's version.
	pinned bool
}

func allConnecting() []connecting {
	of := func(client, file string, args ...string) func(t *testing.T) []string {
		return func(t *testing.T) []string {
			return append([]string{clientNamed(t, client).interpreter(t), inFolder(file)}, args...)
		}
	}
	golang := func(library string) connecting {
		return connecting{library, func(t *testing.T) []string {
			return []string{buildProgram(t, "golang/connect"),
				library}
		}, true}
	}
	return []connecting{
		golang("go-redis"), golang("rueidis"), golang("valkey-go"),
		{"redis-py", of("python", "python/connect.py"), false}, {"redis-rb", of("ruby", "ruby/connect.rb"), false},
		{"phpredis", of("php", "php/connect.php", "phpredis"), false},
		{"Predis", func(t *testing.T) []string {
			return append([]string{phpLocks(t)[0]}, inFolder("php/connect.php"), "predis")
		}, false},
		{"node-redis", of("node", "node/connect.js", "redis"), false},
		{"hiredis", func(t *testing.T) []string { return []string{BuildWithHiredis(t, "c/connect.c")} }, false},
	}
}

// TestConnecting lets each library connect and lock with an upstream and lock keys, with only an
// upstream, and at a lock server. It compares the sent and the refused commands with
// docs/compatibility.md. A version that differs from the page is only logged, except by make
// versions.
func TestConnecting(t *testing.T) {
	redistest.SkipShort(t)
	all := allConnecting()
	// For example "ioredis node integration/clients/node/connect.js ioredis".
	if other := os.Getenv("REDLOCK_TEST_LIBRARY"); other != "" {
		words := strings.Fields(other)
		all = []connecting{{words[0], func(*testing.T) []string { return words[1:] }, false}}
	}
	page, err := os.ReadFile("../../docs/compatibility.md")
	kit.Must(t, err)
	at := startPlaces(t)
	for _, c := range all {
		t.Run(c.library, func(t *testing.T) { c.compare(t, at, string(page)) })
	}
}

func (c connecting) compare(t *testing.T, at places, page string) {
	version, cells := c.tryAll(t, at)
	if t.Failed() {
		return
	}
	row := regexp.MustCompile(`(?m)^\| ` +
		regexp.QuoteMeta(c.library+" "+version) + ` \| [^|]+ \| (.+) \|$`).FindStringSubmatch(page)
	is := strings.Join(cells, " | ")
	switch {
	case row == nil && (c.pinned || os.Getenv("REDLOCK_TEST_PAGE") != ""):
		t.Errorf("docs/compatibility.md lacks %s %s: %s", c.library, version, is)
	case row == nil:
		t.Logf("docs/compatibility.md lacks %s %s: %s", c.library, version, is)
	case row[1] != is:
		t.Errorf("of %s %s the page has\n%s\nand it is\n%s", c.library, version, row[1], is)
	}
}

// places holds the addresses at which a library is tested.
type places struct{ direct, beside, alone, server string }

// startPlaces starts a server, and proxies in three modes, each with its own master.
func startPlaces(t *testing.T) places {
	upstream := kit.StartRedis(t)
	data, lockKeys := []string{"--upstream", upstream.URL()}, []string{"--lock-keys", "lock:*"}
	proxy := func(args ...[]string) string {
		masters := redistest.URLs([]*redistest.Server{kit.StartRedis(t)})
		return kit.StartProxy(t, masters, slices.Concat(args...)...).Addr()
	}
	return places{upstream.Addr(), proxy(lockKeys, data), proxy(data), proxy(lockKeys)}
}

// tryAll returns the library's version, and its commands for the page.
func (c connecting) tryAll(t *testing.T, at places) (version string, cells []string) {
	command := c.command(t)
	_, direct, _ := try(t, at.direct, "", command)
	version, beside, steps := try(t, at.beside, "", command)
	_, alone, _ := try(t, at.alone, "", command)
	_, server, _ := try(t, at.server, "other", command)
	if fmt.Sprint(alone) != fmt.Sprint(direct) {
		t.Errorf("with an upstream alone it said, and was refused, %q; without a proxy %q", alone, direct)
	}
	return version, []string{allSaid(beside), allRefused(beside), allRefused(alone), allRefused(server),
		strings.Join(steps, ", ")}
}

// try runs the steps of a program at an address, and returns the commands on its first connection
// before it took a lock. Without an upstream, the step away must be refused; all others succeed.
func try(t *testing.T, addr, away string, command []string) (version string, said []exchange, steps []string) {
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
		case name == away && strings.Contains(result, "no upstream: "), name != away && result == "yes":
			steps = append(steps, name)
		default:
			t.Errorf("%v: %s: %s", command, name, result)
		}
	}
	if !slices.Contains(steps, "messages") || version == "" {
		t.Errorf("%v: %s", command, output)
	}
	return version, recorder.before("lock:first"), steps
}

// exchange is a command, and the error reply to it.
type exchange struct{ said, refused string }

// allSaid returns all commands.
func allSaid(said []exchange) string {
	var all []string
	for _, e := range said {
		all = append(all, e.said)
	}
	return listed(all)
}

// allRefused returns the commands with an error reply.
func allRefused(said []exchange) string {
	var all []string
	for _, e := range said {
		if e.refused != "" {
			all = append(all, e.said)
		}
	}
	return listed(all)
}

func listed(all []string) string {
	if len(all) == 0 {
		return "nothing"
	}
	return "`" + strings.Join(slices.Compact(all), "`, `") + "`"
}

// recorder forwards connections to an address, and records their commands and replies.
type recorder struct {
	addr    string
	mu      sync.Mutex
	talks   []*talk
	running sync.WaitGroup
}

// talk is one connection: its commands, and the replies to them.
type talk struct {
	mu       sync.Mutex
	commands [][]any
	replies  []any
}

func startRecorder(t *testing.T, addr string) *recorder {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	r := &recorder{addr: ln.Addr().String()}
	t.Cleanup(func() { _ = ln.Close(); r.running.Wait() })
	r.running.Go(func() {
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
	talked := &talk{}
	r.mu.Lock()
	r.talks = append(r.talks, talked)
	r.mu.Unlock()
	pass := func(from, to net.Conn, keep func(any)) {
		defer client.Close()
		defer server.Close()
		in := bufio.NewReader(io.TeeReader(from, to))
		for {
			said, err := redistest.ReadReply(in)
			if err != nil {
				return
			}
			talked.mu.Lock()
			keep(said)
			talked.mu.Unlock()
		}
	}
	r.running.Go(func() {
		pass(client, server, func(said any) {
			words, _ := said.([]any)
			talked.commands = append(talked.commands, words)
		})
	})
	r.running.Go(func() {
		pass(server, client, func(said any) {
			if _, unasked := said.(redistest.Push); !unasked {
				talked.replies = append(talked.replies, said)
			}
		})
	})
}

// before returns the commands on a connection before the first command with the given key.
func (r *recorder) before(key string) (said []exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, talked := range r.talks {
		talked.mu.Lock()
		end := slices.IndexFunc(talked.commands, func(words []any) bool { return slices.Contains(words, any(key)) })
		if end >= 0 && len(talked.replies) >= end {
			for i, words := range talked.commands[:end] {
				var refusal redistest.RespError
				if err, ok := talked.replies[i].(error); ok {
					errors.As(err, &refusal)
				}
				if name := nameOf(words); name != "PING" { // some libraries send PING while they wait
					said = append(said, exchange{name, string(refusal)})
				}
			}
		}
		talked.mu.Unlock()
		if end >= 0 {
			return said
		}
	}
	return nil
}

// nameOf returns a command as the page names it: with its subcommand or the protocol of HELLO.
func nameOf(words []any) string {
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
