//go:build integration

package clients

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/redistest"
)

// usersScripts names the programs that log in as a user, by the names of the entries of programs.
var usersScripts = map[string]string{
	"python": "python/users.py", "ruby": "ruby/users.rb", "php": "php/users.php", "node": "node/users.js",
	"redis-cli": "rediscli/users.sh",
}

// userCommands lists commands of the user app with their replies. Refused commands have Redis' own
// errors.
var userCommands = []struct{ line, want string }{
	{"SET app:a 1", "OK"},
	{"SET lock:a token NX PX 60000", "OK"},
	{"GET lock:a", "token"},
	{"ACL WHOAMI", "app"},
	{"GET secret", "NOPERM this user has no permissions to access one of the keys used as arguments"},
	{"SET secret 1", "NOPERM this user has no permissions to access one of the keys used as arguments"},
	{"LOCK secret t PX 60000", "NOPERM this user has no permissions to access one of the keys used as arguments"},
	{"FLUSHALL", "NOPERM this user has no permissions to run the 'flushall' command"},
	{"CONFIG GET requirepass", "NOPERM this user has no permissions to run the 'config|get' command"},
	{"FORCEUNLOCK lock:a", "NOPERM this user has no permissions to run the 'forceunlock' command"},
	{"DEL lock:a", "1"},
}

// TestUsers checks that clients of all languages can log in as users of the proxy, with TLS and
// without. The proxy refuses commands without permission, and clients with a wrong password, with
// Redis' errors. It does not execute these commands.
func TestUsers(t *testing.T) {
	redistest.SkipShort(t)
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t, "--requirepass", "hidden")
	upstreamClient := kit.Dial(t, upstream.Addr())
	kit.WantPrefix(t, upstreamClient, "AUTH hidden", "OK")
	file := filepath.Join(t.TempDir(), "users.acl")
	kit.Must(t, os.WriteFile(file,
		[]byte("user default off\nuser app on >wonder ~app:* ~lock:* +@all -@dangerous -@admin +info\n"), 0o600))
	ca := certtest.NewCA(t)
	pair := ca.Issue(t)
	args := []string{"--upstream", "redis://:hidden@" + upstream.Addr(), "--acl-file", file, "--lock-keys", "lock:*"}
	for name, proxy := range map[string]struct {
		ca   string
		args []string
	}{
		"plain": {"", args},
		"TLS":   {ca.File, append([]string{"--tls-cert", pair.Cert, "--tls-key", pair.Key}, args...)},
	} {
		started := kit.StartProxy(t, masters, proxy.args...)
		host, port, err := net.SplitHostPort(started.Addr())
		kit.Must(t, err)
		for _, c := range programs() {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				checkUser(t, upstreamClient, func(password string, lines ...string) []string {
					output, err := c.runAsUser(t, host, port, proxy.ca, password, lines)
					if err != nil {
						t.Fatalf("%v\n%s", err, output)
					}
					return strings.Split(strings.TrimSpace(output), "\n")
				})
			})
		}
		t.Run(name+"/go-redis", func(t *testing.T) {
			checkUser(t, upstreamClient, func(password string, lines ...string) []string {
				return runGoAsUser(t, started.Addr(), proxy.ca, password, lines)
			})
		})
		if log := started.Log(); strings.Contains(log, "wonder") || strings.Contains(log, "guess") ||
			strings.Contains(log, "hidden") {
			t.Error("the log has a password")
		}
	}
}

// TestUsersWithoutCertificate checks that a proxy that requires certificates refuses clients of all
// languages without a certificate, even with the correct password. The proxy executes none of their
// commands.
func TestUsersWithoutCertificate(t *testing.T) {
	redistest.SkipShort(t)
	upstream, ca := kit.StartRedis(t), certtest.NewCA(t)
	file, pair := filepath.Join(t.TempDir(), "users.acl"), ca.Issue(t)
	kit.Must(t, os.WriteFile(file, []byte("user default off\nuser app on >wonder ~* +@all\n"), 0o600))
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--upstream", upstream.URL(), "--acl-file", file,
		"--tls-cert", pair.Cert, "--tls-key", pair.Key, "--tls-client-ca", certtest.NewCA(t).File)
	host, port, err := net.SplitHostPort(proxy.Addr())
	kit.Must(t, err)
	upstreamClient := kit.Dial(t, upstream.Addr())
	const line = "SET app:a 1"
	wantNotExecuted := func(t *testing.T, output string) {
		t.Helper()
		if strings.Contains(output, "OK") {
			t.Errorf("it shows %q", output)
		}
		kit.WantPrefix(t, upstreamClient, "EXISTS app:a", "0")
	}
	for _, c := range programs() {
		t.Run(c.name, func(t *testing.T) {
			output, err := c.runAsUser(t, host, port, ca.File, "wonder", []string{line})
			t.Logf("%v: %s", err, output)
			wantNotExecuted(t, output)
		})
	}
	t.Run("go-redis", func(t *testing.T) {
		wantNotExecuted(t, strings.Join(runGoAsUser(t, proxy.Addr(), ca.File, "wonder", []string{line}), "\n"))
	})
}

// runAsUser runs the program that logs in as the user app and sends commands.
func (p program) runAsUser(t *testing.T, host, port, ca, password string, lines []string) (output string, err error) {
	t.Helper()
	return run(append([]string{p.interpreter(t), programPath(usersScripts[p.name]), host, port, ca, "app", password},
		lines...)...)
}

// checkUser sends the commands with the correct and a wrong password, and checks the upstream.
func checkUser(t *testing.T, upstreamClient *redistest.Client, send func(password string, lines ...string) []string) {
	t.Helper()
	var lines []string
	for _, c := range userCommands {
		lines = append(lines, c.line)
	}
	got := send("wonder", lines...)
	if len(got) != len(userCommands) {
		t.Fatalf("%d replies: %q", len(got), got)
	}
	for i, c := range userCommands {
		// redis-py has classes for some error codes, and removes these codes from the message
		if !strings.Contains(got[i], strings.TrimPrefix(c.want, "NOPERM ")) {
			t.Errorf("%s: got %q, want %q", c.line, got[i], c.want)
		}
	}
	kit.WantPrefix(t, upstreamClient, "EXISTS secret", "0")
	kit.WantPrefix(t, upstreamClient, "DEL app:a", "1")
	refusal := strings.Join(send("guess", "SET app:a 2"), "\n")
	if !strings.Contains(refusal, "invalid username-password pair or user is disabled.") {
		t.Errorf("a wrong password: %q", refusal)
	}
	kit.WantPrefix(t, upstreamClient, "EXISTS app:a", "0")
}

// runGoAsUser sends the commands with go-redis, each over a new connection.
func runGoAsUser(t *testing.T, addr, ca, password string, lines []string) (replies []string) {
	t.Helper()
	opts := redis.Options{Addr: addr, Username: "app", Password: password, MaxRetries: -1}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		kit.Must(t, err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		opts.TLSConfig = &tls.Config{RootCAs: roots}
	}
	for _, line := range lines {
		client := redis.NewClient(&opts)
		var words []any
		for w := range strings.FieldsSeq(line) {
			words = append(words, w)
		}
		reply, err := client.Do(t.Context(), words...).Result()
		if err != nil {
			reply = err
		}
		replies = append(replies, fmt.Sprint(reply))
		_ = client.Close()
	}
	return replies
}
