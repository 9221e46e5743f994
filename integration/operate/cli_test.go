//go:build integration

package operate

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
)

// TestBadCommandLine checks that the program reports each mistake in one line, and prints nothing
// else.
func TestBadCommandLine(t *testing.T) {
	t.Parallel()
	const master = "redis://127.0.0.1:1"
	for _, test := range []struct {
		args string
		want string
	}{
		{"serve --foo", "flag provided but not defined: -foo (see redlock-proxy serve --help)"},
		{"serve --master " + master + " --guard false", `unexpected argument "false"; write --guard=false`},
		{"--foo", "flag provided but not defined: -foo (see redlock-proxy --help)"},
		{"server", `unknown command "server" (did you mean serve? see redlock-proxy --help)`},
		{"launch", `unknown command "launch" (see redlock-proxy --help)`},
		{"serve --mastr " + master,
			"flag provided but not defined: -mastr (did you mean --master? see redlock-proxy serve --help)"},
		{"demo --lisen :0", "flag provided but not defined: -lisen (did you mean --listen? see redlock-proxy demo --help)"},
		{"--verson", "flag provided but not defined: -verson (did you mean --version? see redlock-proxy --help)"},
		{"--master " + master + " serve", "flag provided but not defined: -master (it comes after the command: redlock-proxy serve --master …; see redlock-proxy --help)"},
		{"serve --master redis://127.0.0.1:63x79", `--master: "redis://127.0.0.1:63x79" has a port that is not a number (a password comes before an @, the host after it)`},
		{"serve --master " + master + " --lock-keys lock:*,job:*", `--lock-keys: "lock:*,job:*" contains ','; give each glob separately (--lock-keys A --lock-keys B, REDLOCK_LOCK_KEYS="A B", or a line "- A" for each in the file; to match a ',' in a key, write \,)`},
		{"serve --master " + master + " --lock-keys lock:[",
			`--lock-keys: "lock:[" has a [ without a ] (to match a [ in a key, write \[)`},
		{"serve --master " + master + " --lock-keys lock:.*", `--lock-keys: "lock:.*" is a regular expression; write a glob as in KEYS, such as "lock:*" instead of "lock:.*" (to match a special character itself, write \ before it)`},
		{"serve", "master: no master is given: at least one is needed (--master URL, REDLOCK_MASTER=URL, or a list in the file)"},
		{"serve --master " + master + " --upstream-connections 8", "--upstream-connections: no longer a setting: each client has a connection of its own to the upstream; remove it"},
		{"serve extra --master " + master, `unexpected argument "extra"`},
		{"demo extra", `unexpected argument "extra"`},
		{"demo --masters 0", "--masters: 0 is less than 1"},
		{"check --master " + master + " --max-ttl soon",
			`--max-ttl: "soon" is not a duration (a number and a unit, such as "100ms" or "24h")`},
		{"serve --master " + master + " --max-clients 0", `--max-clients: "0" is less than 1`},
		{"serve --master " + master + " --master " + master, `--master: "` + master + `" is the same master as "` +
			master + `", which has one vote; name it once`},
		{"serve --master " + master + " --listen 6380",
			`--listen: "6380" is not host:port (such as "127.0.0.1:6380"; an IPv6 host is written in brackets)`},
		{"serve --config /no/such/file.yaml --master " + master,
			"--config: open /no/such/file.yaml: no such file or directory"},
	} {
		t.Run(test.args, func(t *testing.T) {
			got := runProxy(t, strings.Fields(test.args)...)
			wantFailure(t, got, "redlock-proxy: "+test.want)
			if got.stdout != "" {
				t.Errorf("got on stdout:\n%s", got.stdout)
			}
		})
	}
}

// TestBadConfigFile checks that the program reports each mistake in one line with the file, the
// line, the name and the value.
func TestBadConfigFile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"an unknown key and a bad value", "master:\n  - redis://127.0.0.1:1\nmax-tll: 1h\nmaster-timeout: 100\n",
			[]string{`FILE:3: max-tll: unknown setting (did you mean max-ttl?)`,
				`FILE:4: master-timeout: "100" is not a duration (a number and a unit, such as "100ms" or "24h")`}},
		{"a password is not shown", "master:\n  - redis://user:secret@127.0.0.1:1/3\n",
			[]string{`FILE:2: master: "redis://user:xxxxx@127.0.0.1:1/3" names a database, which the client's SELECT chooses; leave it out`}},
		{"not YAML", "master: [\n", []string{"FILE:1: "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "conf.yaml")
			kit.Must(t, os.WriteFile(file, []byte(test.text), 0o600))
			got := runProxy(t, "serve", "--config", file)
			lines := strings.Split(strings.TrimSuffix(got.stderr, "\n"), "\n")
			if got.code != 1 || len(lines) != len(test.want) {
				t.Fatalf("got exit code %d and\n%swant 1 and %d lines", got.code, got.stderr, len(test.want))
			}
			for i, want := range test.want {
				want = strings.Replace(want, "FILE", file, 1)
				if i == 0 {
					want = "redlock-proxy: " + want
				}
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("got  %s\nwant %s", lines[i], want)
				}
			}
		})
	}
}

// TestSettingPrecedence checks that a flag overrides the environment, which overrides the file,
// which overrides the default, in the running proxy.
func TestSettingPrecedence(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	file := filepath.Join(t.TempDir(), "conf.yaml")
	kit.Must(t, os.WriteFile(file,
		[]byte("max-ttl: 1s\nkey-prefix: 'file:'\nmax-clients: 7\nmaster:\n  - redis://127.0.0.1:1\n"), 0o600))
	proxy, err := harness.StartProxy(harness.ProxyOptions{
		Masters: redistest.URLs(masters),
		Args:    append(kit.LongMasterTimeoutArgs(), "--config", file, "--max-ttl", "10s"),
		Env:     []string{"REDLOCK_MAX_TTL=2s", "REDLOCK_KEY_PREFIX=env:"},
	})
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, proxy.Close()) })
	client := kit.Connect(t, proxy)
	// The TTL is within the flag's limit; the file's master does not exist.
	kit.WantReply(t, client, "LOCK k t PX 10000", kit.GrantReply)
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckHeld(master, "env:k", "t") })
	if info, _ := kit.Do(t, client, "INFO", "clients").(string); !strings.Contains(info, "maxclients:7\r\n") {
		t.Errorf("got %q, want maxclients:7 of the file", info)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"version", "--version", "-v", "-v serve"} {
		got := runProxy(t, strings.Fields(args)...)
		if line := regexp.MustCompile(`^redlock-proxy \d+\.\d+\.\d+\S* \(commit \S+, go1\.\S+\)\n$`); got.code != 0 ||
			got.stderr != "" || !line.MatchString(got.stdout) {
			t.Errorf("%s: got %+v, want one line with version, commit and Go", args, got)
		}
	}
}

// TestServerTextOnTerminal checks that no text of a server controls the operator's terminal,
// whichever command prints it.
func TestServerTextOnTerminal(t *testing.T) {
	t.Parallel()
	addr := startHostileServer(t, "-ERR \x1b]0;title\x07\x1b[2J\rverdict: ok\r\n")
	master, escaped := "redis://"+addr, `\x1b]0;title\x07\x1b[2J\x0dverdict: ok`
	for _, args := range []string{
		"check --master " + master, "init --longest-ttl 0s --master " + master,
		"init --new-settings --master " + master, "lock --wait 0s --addr " + addr + " k -- true", "move --addr " + addr,
	} {
		got := runProxy(t, strings.Fields(args)...)
		all := got.stdout + got.stderr
		if !strings.Contains(all, escaped) || strings.ContainsAny(all, "\x1b\a\r") {
			t.Errorf("%s: %q", args, all)
		}
	}
	got := runProxy(t, "check", "--json", "--master", master)
	var document any
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil {
		t.Errorf("%v: %q", err, got.stdout)
	}
}

// startHostileServer starts a server that gives the same reply to every command, and returns its
// address.
func startHostileServer(t *testing.T, reply string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go replyAlways(conn, reply)
		}
	}()
	return listener.Addr().String()
}

// replyAlways gives the same reply to every command, until the client disconnects.
func replyAlways(conn net.Conn, reply string) {
	defer conn.Close()
	in := resp.NewReader(conn, resp.ClientLimits())
	for {
		in.Begin()
		if _, err := in.ReadValue(); err != nil { // a command has the format of an array reply
			return
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}
