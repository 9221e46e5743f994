//go:build integration

package relay

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/clients"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// cliExample is one use of redis-cli.
type cliExample struct {
	name     string
	args     string
	stdin    string
	wantPart string // part of the expected output
}

// TestRelayRedisCLI runs redis-cli with the same arguments and input, with the server and with the
// proxy, and compares the output.
func TestRelayRedisCLI(t *testing.T) {
	r := startRelay(t)
	r.fill(t)
	for _, use := range []cliExample{
		{name: "bigkeys", args: "--bigkeys", wantPart: `Biggest   list found '"list"' has 200 items`},
		{name: "memkeys", args: "--memkeys", wantPart: "Sampled 204 keys in the keyspace!"},
		{name: "scan", args: "--scan", wantPart: "user:7\n"},
		{name: "scan with a pattern", args: "--scan --pattern user:1*", wantPart: "user:19\n"},
		{name: "RESP3 types", args: "-3 --no-raw",
			stdin:    "HGETALL user:7\nSMEMBERS set\nZRANGE sorted 0 -1 WITHSCORES\nZSCORE sorted member:7\n",
			wantPart: `2# "age" => "7"`},
		{name: "CSV", args: "--csv LRANGE list 0 2", wantPart: `"0","1","2"`},
		{name: "JSON", args: "--json HGETALL user:7", wantPart: `"age":"7"`},
		{name: "scripts", args: `EVAL return{ARGV[1],redis.call('GET',KEYS[1])} 1 user x`, wantPart: "x\n1\n"},
		{name: "errors", stdin: "NOSUCH a\nINCR set\nGET\n", wantPart: "WRONGTYPE"},
	} {
		t.Run(use.name, func(t *testing.T) { r.wantSame(t, func(addr string) string { return use.run(t, addr) }) })
	}
}

// TestRelayRedisCLIWrites compares uses of redis-cli that change data. Each use begins with the
// same data.
func TestRelayRedisCLIWrites(t *testing.T) {
	redistest.SkipShort(t)
	r := startRelay(t)
	for _, use := range []cliExample{
		{name: "transaction", stdin: "MULTI\nINCR n\nEXEC\nGET n\n", wantPart: "OK\nQUEUED\n1\n1\n"},
		{name: "aborted transaction", stdin: "MULTI\nNOSUCH\nEXEC\nGET n\n", wantPart: "EXECABORT"},
		{name: "another database", args: "-n 3", stdin: "SET n 3\nSELECT 0\nEXISTS n\n", wantPart: "OK\nOK\n0\n"},
		{name: "invalidations of a cache", args: "-3 --show-pushes yes",
			stdin: "CLIENT TRACKING ON\nGET user\nSET user 2\nPING\n", wantPart: "invalidate"},
		{name: "blocking pops", stdin: "RPUSH queue a b\nBLPOP queue 1\nBRPOPLPUSH queue done 1\nBLPOP queue 0.1\n",
			wantPart: "queue\na\nb\n"},
		{name: "a file as the last argument", args: "-x SET file", stdin: "line\x00\r\nline", wantPart: "OK\n"},
		{name: "repeated", args: "-r 3 INCR n", wantPart: "1\n2\n3\n"},
	} {
		t.Run(use.name, func(t *testing.T) {
			r.wantSame(t, func(addr string) string {
				r.fill(t)
				return use.run(t, addr)
			})
		})
	}
}

func (example cliExample) run(t *testing.T, addr string) string {
	t.Helper()
	stdout := output(t, "redis-cli", addr, strings.NewReader(example.stdin), strings.Fields(example.args)...)
	if !strings.Contains(stdout, example.wantPart) {
		t.Errorf("%s: expected %q in:\n%s", addr, example.wantPart, stdout)
	}
	return stdout
}

// fill replaces the data of the server with the same few keys each time. With few keys, Redis does
// not resize its hash table at the end; SCAN would return a resized table in another order.
func (r *relay) fill(t *testing.T) {
	t.Helper()
	control := r.dialUpstream(t)
	kit.Want(t, control, "OK", "FLUSHALL")
	kit.Want(t, control, "OK", "SET", "user", "1")
	for i := range 200 {
		number := fmt.Sprint(i)
		kit.Do(t, control, "HSET", "user:"+number, "name", strings.Repeat("x", i), "age", number, "city", "")
		kit.Do(t, control, "RPUSH", "list", number)
		kit.Do(t, control, "SADD", "set", number)
		kit.Do(t, control, "ZADD", "sorted", number, "member:"+number)
	}
	kit.Must(t, control.Close())
}

// TestRelayRDB lets redis-cli fetch all data like a replica.
func TestRelayRDB(t *testing.T) {
	r := startRelay(t)
	r.fill(t)
	r.wantSame(t, func(addr string) string {
		folder := t.TempDir()
		file := filepath.Join(folder, "dump.rdb")
		ctx, cancel := context.WithTimeout(t.Context(), clients.ProgramTimeout)
		defer cancel()
		if stdout, err := toolCommand(t, ctx, "redis-cli", addr, "--rdb", file).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, stdout)
		}
		reader := kit.StartSameVersion(t, r.upstream)
		kit.Must(t, reader.RestoreDir(folder))
		client := kit.Dial(t, reader.Addr())
		kit.Want(t, client, int64(204), "DBSIZE")
		return fmt.Sprint(kit.Do(t, client, "LRANGE", "list", "0", "-1"), kit.Do(t, client, "HGET", "user:199", "name"))
	})
}

// TestRelayMonitor compares two redis-cli processes that print the commands of the server. One
// process is connected through the proxy.
func TestRelayMonitor(t *testing.T) {
	r := startRelay(t)
	r.wantSameStream(t, []string{"MONITOR"}, "OK\n", func(control *redistest.Client) {
		for i := range 100 {
			kit.Do(t, control, "SET", fmt.Sprint("key:", i), "value \r\n\x00")
		}
		kit.Do(t, control, "SET", "the", "last")
	}, `"the" "last"`+"\n")
}

// TestRelaySubscribe checks that a redis-cli that is connected to the server, and a redis-cli that
// is connected to the proxy, print the same messages.
func TestRelaySubscribe(t *testing.T) {
	r := startRelay(t)
	for _, command := range [][]string{{"SUBSCRIBE", "news", "end"}, {"PSUBSCRIBE", "n*", "e?d"},
		{"-3", "SUBSCRIBE", "news", "end"}} {
		t.Run(strings.Join(command, " "), func(t *testing.T) {
			r.wantSameStream(t, command, "\n2\n", func(control *redistest.Client) {
				for i := range 100 {
					kit.Want(t, control, int64(2), "PUBLISH", "news", fmt.Sprint("message ", i))
				}
				kit.Want(t, control, int64(2), "PUBLISH", "end", "the end")
			}, "the end\n")
		})
	}
}

// wantSameStream runs redis-cli with an endless command with the server and with the proxy, at the
// same time. When both programs have printed beginning, wantSameStream calls change. Then both must
// print the same text, up to end.
func (r *relay) wantSameStream(t *testing.T, command []string, beginning string, change func(control *redistest.Client), end string) {
	t.Helper()
	directStream, proxyStream := startStream(t, r.upstream.Addr(), command...), startStream(t, r.proxy.Addr(), command...)
	heads := [2]string{directStream.readUntil(t, beginning), proxyStream.readUntil(t, beginning)}
	if heads[0] != heads[1] {
		t.Errorf("through the proxy it begins\n%s\ndirect\n%s", heads[1], heads[0])
	}
	change(r.dialUpstream(t))
	want, got := directStream.readUntil(t, end), proxyStream.readUntil(t, end)
	// One redis-cli may have received the proxy's probes of the server before the other redis-cli
	// began.
	if want, got = withoutProbes(want), withoutProbes(got); got != want {
		t.Errorf("through the proxy:\n%s\ndirect:\n%s", got, want)
	}
}

var probeLine = regexp.MustCompile(`(?m)^.*"PING"$\n`)

func withoutProbes(text string) string { return probeLine.ReplaceAllString(text, "") }

// stream is a program that runs until the test ends, and its output.
type stream struct {
	stdin  io.Writer
	stdout *bufio.Reader
	stop   context.CancelFunc
}

func startStream(t *testing.T, addr string, args ...string) *stream {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), clients.ProgramTimeout)
	return startCommand(t, toolCommand(t, ctx, "redis-cli", addr, args...), stop)
}

func startCommand(t *testing.T, cmd *exec.Cmd, stop context.CancelFunc) *stream {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	kit.Must(t, err)
	stdout, err := cmd.StdoutPipe()
	kit.Must(t, err)
	kit.Must(t, cmd.Start())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // the process was killed
	})
	return &stream{stdin, bufio.NewReader(stdout), stop}
}

// readUntil reads up to the first occurrence of end, and returns all text read.
func (s *stream) readUntil(t *testing.T, end string) string {
	t.Helper()
	timeout := time.AfterFunc(kit.WaitLimit, s.stop)
	defer timeout.Stop()
	var text strings.Builder
	for !strings.HasSuffix(text.String(), end) {
		b, err := s.stdout.ReadByte()
		if err != nil {
			t.Fatalf("%v: it did not print %q within %v, but\n%s", err, end, kit.WaitLimit, &text)
		}
		text.WriteByte(b)
	}
	return text.String()
}

// TestRelayStat compares the output of redis-cli --stat with the server and with the proxy. The
// figures vary, so only their form and the number of keys must be the same.
func TestRelayStat(t *testing.T) {
	redistest.SkipShort(t)
	if _, err := exec.LookPath("stdbuf"); err != nil {
		redistest.SkipMissing(t, "stdbuf: apt-get install coreutils")
	}
	r := startRelay(t)
	r.fill(t)
	r.wantSame(t, func(addr string) string {
		ctx, stop := context.WithTimeout(t.Context(), clients.ProgramTimeout)
		cmd := toolCommand(t, ctx, "redis-cli", addr, "--stat", "-i", "0.05")
		cmd.Path, cmd.Args = withLineBuffering(t, cmd)
		s := startCommand(t, cmd, stop)
		head := s.readUntil(t, "connections          \n")
		var rows []string
		for range 3 {
			rows = append(rows, statNumbers.ReplaceAllString(s.readUntil(t, "\n"), " N"))
		}
		return head + strings.Join(rows, "")
	})
}

// withLineBuffering returns a program that prints each line of cmd immediately, even without a
// terminal.
func withLineBuffering(t *testing.T, cmd *exec.Cmd) (string, []string) {
	t.Helper()
	path, err := exec.LookPath("stdbuf")
	kit.Must(t, err)
	return path, append([]string{"stdbuf", "-oL", cmd.Path}, cmd.Args[1:]...)
}

// statNumbers matches the varying parts of a row of redis-cli --stat: all numbers except the number
// of keys, which is the first number.
var statNumbers = regexp.MustCompile(` +\(?\+?\d[\d.]*[KMG]?\)?`)

// TestRelayHints checks that redis-cli in a terminal shows the arguments of LOCK and MLOCK in
// grey, and completes the command.
func TestRelayHints(t *testing.T) {
	script, err := exec.LookPath("script")
	if err != nil {
		redistest.SkipMissing(t, "script of util-linux: apt-get install bsdutils")
	}
	redistest.RequireFeature(t, "COMMAND DOCS", "7.0")
	r := startRelay(t)
	ctx, stop := context.WithTimeout(t.Context(), clients.ProgramTimeout)
	command := "stty rows 24 cols 160; exec " + strings.Join(toolCommand(t, ctx, "redis-cli", r.proxy.Addr()).Args, " ")
	cmd := exec.CommandContext(ctx, script, "-qec", command, "/dev/null")
	cmd.Env = append(os.Environ(), "TERM=xterm", "HOME="+t.TempDir())
	terminal := startCommand(t, cmd, stop)
	terminal.readUntil(t, "> ")
	_, err = io.WriteString(terminal.stdin, "LO\t")
	kit.Must(t, err)
	terminal.readUntil(t, "> LOCK\x1b[0;90;49m key token PX milliseconds|EX seconds [SHARED|SLOTS slots] [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds]")
	_, err = io.WriteString(terminal.stdin, " job me PX 9000\r")
	kit.Must(t, err)
	terminal.readUntil(t, "\n(integer) 8")
	terminal.readUntil(t, "> ") // redis-cli drops what was typed before its prompt
	_, err = io.WriteString(terminal.stdin, "ML\t")
	kit.Must(t, err)
	terminal.readUntil(t, "> MLOCK\x1b[0;90;49m numkeys key [key ...] token PX milliseconds|EX seconds [KEEPALIVE [MAXHOLD milliseconds]]")
	_, err = io.WriteString(terminal.stdin, " 2 a b me PX 9000\r")
	kit.Must(t, err)
	terminal.readUntil(t, "\n(integer) 8")
}

// TestRelayDocs requests the documentation that redis-cli uses for hints. The proxy adds the
// documentation of its own commands, and leaves the documentation of the server's commands
// unchanged.
func TestRelayDocs(t *testing.T) {
	redistest.SkipShort(t)
	redistest.RequireFeature(t, "COMMAND DOCS", "7.0")
	r := startRelay(t)
	docs := output(t, "redis-cli", r.proxy.Addr(), nil, "--json", "COMMAND", "DOCS", "lock")
	for _, part := range []string{`{"lock":{"summary":"Takes a lock`, `"group":"module"`,
		`"name":"token","type":"string"`, `"token":"PX"`, `"token":"BLOCK","flags":["optional"]`} {
		if !strings.Contains(docs, part) {
			t.Errorf("expected %s in COMMAND DOCS lock:\n%s", part, docs)
		}
	}
	for _, command := range []string{"COMMAND DOCS get", "COMMAND INFO get set", "COMMAND GETKEYS MSET a 1 b 2",
		"COMMAND LIST FILTERBY PATTERN z*"} {
		r.wantSame(t, func(addr string) string {
			return output(t, "redis-cli", addr, nil, append([]string{"--json"}, strings.Fields(command)...)...)
		})
	}
	added := len(strings.Fields(output(t, "redis-cli", r.proxy.Addr(), nil, "COMMAND",
		"LIST"))) - len(strings.Fields(output(t, "redis-cli", r.upstream.Addr(), nil, "COMMAND", "LIST")))
	if added < 3 {
		t.Errorf("COMMAND LIST has %d commands more than the server's, want LOCK, UNLOCK, EXTEND and PROXY", added)
	}
}
