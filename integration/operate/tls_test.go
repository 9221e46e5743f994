//go:build integration

package operate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/redistest"
)

// tlsRig holds a proxy that uses TLS for its clients, three masters and the upstream. The proxy has
// one certificate for its clients, and another certificate for the servers.
type tlsRig struct {
	ca, clientCA           *certtest.CA
	serverPair, clientPair certtest.Pair // the proxy's certificates for clients and for servers
	upstream               *redistest.Server
	proxy                  *harness.Proxy
	args                   []string // the flags for its certificates and its upstream
	masters                []string
}

// startTLS starts the masters, the upstream and a proxy with TLS. One certificate authority signs
// the certificates of the servers and of the proxy. A second certificate authority signs the
// certificates of the clients.
func startTLS(t *testing.T, flags ...string) *tlsRig {
	t.Helper()
	r := &tlsRig{ca: certtest.NewCA(t), clientCA: certtest.NewCA(t)}
	r.serverPair, r.clientPair = r.ca.Issue(t), r.ca.Issue(t)
	for range 3 {
		_, url := startTLSMaster(t, r.ca)
		r.masters = append(r.masters, url)
	}
	var url string
	r.upstream, url = startTLSMaster(t, r.ca)
	r.args = append([]string{"--upstream", url, "--ca", r.ca.File, "--client-cert", r.clientPair.Cert, "--client-key", r.clientPair.Key,
		"--tls-cert", r.serverPair.Cert, "--tls-key", r.serverPair.Key}, flags...)
	r.proxy = kit.StartProxy(t, r.masters, r.args...)
	return r
}

// startTLSMaster starts a redis-server with a TLS port that requires certificates of the
// certificate authority ca.
func startTLSMaster(t *testing.T, ca *certtest.CA) (*redistest.Server, string) {
	t.Helper()
	pair, port := ca.Issue(t), kit.FreePort(t)
	server := kit.StartRedis(t, "--tls-port", port, "--tls-cert-file", pair.Cert, "--tls-key-file", pair.Key,
		"--tls-ca-cert-file", ca.File, "--tls-auth-clients", "yes")
	return server, "rediss://127.0.0.1:" + port
}

// clientConfig returns the TLS configuration of a client that trusts the rig's certificate
// authority, and shows the given certificate, if any.
func (r *tlsRig) clientConfig(pairs ...certtest.Pair) *tls.Config {
	config := &tls.Config{RootCAs: r.ca.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS12}
	for _, pair := range pairs {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair.TLS, nil }
	}
	return config
}

// newClient returns a go-redis client with one connection.
func (r *tlsRig) newClient(t *testing.T, config *tls.Config) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: r.proxy.Addr(), TLSConfig: config, MaxRetries: -1, PoolSize: 1,
		DialTimeout: kit.WaitLimit, ReadTimeout: kit.WaitLimit})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// runRedisCLI runs redis-cli, and returns its output.
func runRedisCLI(t *testing.T, addr string, args ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	kit.Must(t, err)
	output, _ := exec.Command("redis-cli", append([]string{"-h", host, "-p", port}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(output))
}

// TestTLSClients checks that real clients with certificates use locks and the upstream over TLS.
func TestTLSClients(t *testing.T) {
	t.Parallel()
	r := startTLS(t)
	r.proxy = kit.StartProxy(t, r.masters, append(r.args, "--tls-client-ca", r.clientCA.File)...)
	clientPair := r.clientCA.Issue(t)
	flags := []string{"--tls", "--cacert", r.ca.File, "--cert", clientPair.Cert, "--key", clientPair.Key}
	for command, want := range map[string]string{"SET a 1": "OK", "GET a": "", "LOCK k t PX 60000": "5", "UNLOCK k t": ""} {
		if got := runRedisCLI(t, r.proxy.Addr(), append(flags, strings.Fields(command)...)...); !strings.HasPrefix(got, want) ||
			strings.Contains(got, "rror") {
			t.Errorf("redis-cli %s: %q", command, got)
		}
	}
	ctx := t.Context()
	client := r.newClient(t, r.clientConfig(clientPair))
	kit.Must(t, client.Set(ctx, "b", strings.Repeat("x", 1<<20), 0).Err())
	if got, err := client.Get(ctx, "b").Result(); len(got) != 1<<20 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	sub := client.Subscribe(ctx, "c")
	defer sub.Close()
	_, err := sub.Receive(ctx)
	kit.Must(t, err)
	kit.Must(t, kit.SendToMaster(r.upstream, "PUBLISH", "c", "hello"))
	if message, err := sub.ReceiveMessage(ctx); err != nil || message.Payload != "hello" {
		t.Errorf("got %v, %v", message, err)
	}
	checkPythonClient(t, r, clientPair)
}

// checkPythonClient locks and pipelines with redis-py.
func checkPythonClient(t *testing.T, r *tlsRig, pair certtest.Pair) {
	t.Helper()
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import redis").Run() != nil {
		redistest.SkipMissing(t, "the client python: apt-get install python3-redis")
	}
	_, port, err := net.SplitHostPort(r.proxy.Addr())
	kit.Must(t, err)
	const program = `
import redis, sys
r = redis.Redis(host="localhost", port=int(sys.argv[1]), ssl=True, ssl_ca_certs=sys.argv[2], ssl_certfile=sys.argv[3], ssl_keyfile=sys.argv[4])
with r.pipeline(transaction=True) as p:
    print(p.set("p", "v").get("p").execute())
print(r.execute_command("LOCK", "py", "t", "PX", 60000) > 50000, r.execute_command("UNLOCK", "py", "t"))`
	output, err := exec.Command(python, "-c", program, port, r.ca.File, pair.Cert, pair.Key).CombinedOutput()
	if want := "[True, b'v']\nTrue 1\n"; err != nil || string(output) != want {
		t.Errorf("redis-py: %v, got %s, want %s", err, output, want)
	}
}

// TestTLSRefused checks that the proxy refuses clients without a valid certificate, with a wrong
// certificate authority, or without TLS. The log has the reason, and the proxy keeps running.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	r := startTLS(t)
	r.proxy = kit.StartProxy(t, r.masters, append(r.args, "--tls-client-ca", r.clientCA.File)...)
	clientPair := r.clientCA.Issue(t)
	goodClient := r.newClient(t, r.clientConfig(clientPair))
	kit.Must(t, goodClient.Set(t.Context(), "kept", "1", 0).Err())

	otherCA, expired := certtest.NewCA(t), r.clientCA.IssueUntil(t, time.Now().Add(-time.Minute))
	for name, test := range map[string]struct {
		args    []string
		logText string
	}{
		"a wrong authority": {[]string{"--tls", "--cacert", otherCA.File, "--cert", clientPair.Cert, "--key",
			clientPair.Key}, "it may not trust tls-cert"},
		"no certificate": {[]string{"--tls", "--cacert", r.ca.File}, "client didn't provide a certificate"},
		"a stranger": {[]string{"--tls", "--cacert", r.ca.File, "--cert", r.serverPair.Cert, "--key",
			r.serverPair.Key}, "certificate signed by unknown authority"},
		"an expired certificate": {[]string{"--tls", "--cacert", r.ca.File, "--cert", expired.Cert, "--key",
			expired.Key}, "certificate has expired"},
		"plain text": {nil, "the client does not speak TLS"},
	} {
		if got := runRedisCLI(t, r.proxy.Addr(), append(test.args, "FLUSHALL")...); got == "OK" || got == "" {
			t.Errorf("%s: redis-cli says %q", name, got)
		}
		if _, err := r.proxy.WaitLog(test.logText, kit.WaitLimit); err != nil {
			t.Errorf("%s: the log has no %q", name, test.logText)
		}
	}
	plainProxy := kit.StartProxy(t, r.masters, append([]string{"--upstream", r.upstream.URL()}, r.args[2:8]...)...)
	if got := runRedisCLI(t, plainProxy.Addr(), "--tls", "--cacert", r.ca.File, "FLUSHALL"); !strings.Contains(got,
		"SSL_connect failed") {
		t.Errorf("TLS to a plain port: redis-cli says %q", got)
	}
	if _, err := plainProxy.WaitLog("client turned away: it speaks TLS, but this port does not (tls-cert)",
		kit.WaitLimit); err != nil {
		t.Error("TLS to a plain port is not logged")
	}
	kit.WantPrefix(t, kit.Connect(t, plainProxy), "GET kept", "1")
	kit.Must(t, goodClient.Get(t.Context(), "kept").Err())
}

// TestTLSFiles checks that every command fails at start if a TLS file is missing, malformed or
// inconsistent. An example of an inconsistent file is a key that does not belong to the
// certificate. The error names the file.
func TestTLSFiles(t *testing.T) {
	t.Parallel()
	ca := certtest.NewCA(t)
	firstPair, secondPair := ca.Issue(t), ca.Issue(t)
	for _, command := range [][]string{{"serve"}, {"serve", "--check-config"}, {"check"}, {"init", "--longest-ttl", "0s"}} {
		for want, args := range map[string][]string{
			"tls-cert: open /none: no such file or directory": {"--tls-cert", "/none", "--tls-key", firstPair.Key},
			"tls-key: " + secondPair.Key + ": it does not match tls-cert " +
				firstPair.Cert + ": tls: private key does not match public key": {"--tls-cert", firstPair.Cert, "--tls-key", secondPair.Key},
			"ca: " + firstPair.Key + ": it contains no PEM certificate": {"--ca", firstPair.Key},
			`--tls-cert: "x" is given without tls-key`:                  {"--tls-cert", "x"},
		} {
			masters := []string{"--master", "rediss://127.0.0.1:1", "--master", "rediss://127.0.0.1:2", "--master",
				"rediss://127.0.0.1:3"}
			wantFailure(t, runProxy(t, slices.Concat(command, masters, args)...), "redlock-proxy: "+want)
		}
	}
	expired := ca.IssueUntil(t, time.Now().Add(-time.Minute))
	got := runProxy(t, "serve", "--check-config", "--master", "redis://127.0.0.1:1", "--tls-cert", expired.Cert,
		"--tls-key", expired.Key)
	if got.code != 0 || !strings.Contains(got.stdout, "warning: tls-cert: "+expired.Cert+": the certificate expired at ") {
		t.Errorf("an expired certificate: %+v", got)
	}
}

// TestTLSHealth checks that the health check uses TLS if the proxy does. It reports a running proxy
// as alive even if the check has no client certificate, and the proxy requires one.
func TestTLSHealth(t *testing.T) {
	t.Parallel()
	r := startTLS(t)
	flags := []string{"--listen", r.proxy.Addr(), "--tls-cert", r.serverPair.Cert, "--tls-key", r.serverPair.Key}
	for _, args := range [][]string{{"healthcheck"}, {"healthcheck", "--ready"}} {
		if got := runProxy(t, append(args, flags...)...); got != (outcome{}) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := runProxy(t, append([]string{"check", "--fresh-start", "--master", r.masters[0], "--master", r.masters[1],
		"--master", r.masters[2]}, r.args...)...); got.code != 0 && got.code != 4 {
		t.Errorf("check: %+v", got)
	}
	r.proxy = kit.StartProxy(t, r.masters, append(r.args, "--tls-client-ca", r.clientCA.File, "--max-clients", "1")...)
	flags[1] = r.proxy.Addr()
	if got := runProxy(t, append([]string{"healthcheck"}, flags...)...); got != (outcome{}) {
		t.Errorf("without a certificate for it: %+v", got)
	}
	if got := runProxy(t, append([]string{"healthcheck", "--ready"}, flags...)...); got.code != 3 ||
		!strings.Contains(got.stderr, "certificate") {
		t.Errorf("without a certificate for it: %+v", got)
	}
	clientPair := r.clientCA.Issue(t)
	kit.Eventually(t, func() error {
		if got := runProxy(t, append([]string{"healthcheck", "--ready", "--client-cert", clientPair.Cert, "--client-key",
			clientPair.Key}, flags...)...); got != (outcome{}) {
			return fmt.Errorf("with a certificate: %+v", got)
		}
		return nil
	})
	singleClient := r.newClient(t, r.clientConfig(clientPair))
	kit.Eventually(t, func() error { return singleClient.Ping(context.Background()).Err() })
	if got := runProxy(t, append([]string{"healthcheck"}, flags...)...); got != (outcome{}) {
		t.Errorf("with as many clients as there may be: %+v", got)
	}
}

// reload sends SIGHUP and waits until the log contains text n times.
func (r *tlsRig) reload(t *testing.T, text string, n int) {
	t.Helper()
	kit.Must(t, r.proxy.Signal(syscall.SIGHUP))
	kit.Await(t, text, func() bool { return strings.Count(r.proxy.Log(), text) >= n })
}

// serial returns the serial number of the certificate that a new client receives.
func (r *tlsRig) serial(t *testing.T) string {
	t.Helper()
	conn, err := tls.Dial("tcp", r.proxy.Addr(), r.clientConfig())
	kit.Must(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

const (
	reloadedMessage = `msg="configuration reloaded" by=SIGHUP changed="`
	refusedMessage  = `msg="the configuration was not reloaded: nothing was changed" by=SIGHUP`
)

// TestRenewalUnderLoad renews certificates while clients work and sometimes reconnect; some of the
// new files are invalid. No connection and no reply is lost, and new clients get the new
// certificate.
func TestRenewalUnderLoad(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startTLS(t)
	ctx, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	var commands, connections atomic.Int64
	failures := make(chan error, 8)
	for i := range cap(failures) {
		workers.Go(func() { failures <- r.count(ctx, fmt.Sprint("n", i), i%2 == 0, &commands, &connections) })
	}
	serial := r.serial(t)
	for n := 1; n <= 6; n++ {
		r.serverPair.CopyFrom(t, r.ca.Issue(t))
		r.clientPair.CopyFrom(t, r.ca.Issue(t))
		r.reload(t, reloadedMessage, n)
		newSerial := r.serial(t)
		if newSerial == serial {
			t.Errorf("renewal %d: new clients are shown the old certificate", n)
		}
		kit.Must(t, os.WriteFile(r.serverPair.Cert, []byte("broken"), 0o600))
		r.reload(t, refusedMessage, n)
		if serial = r.serial(t); serial != newSerial {
			t.Errorf("renewal %d: a broken file changed what is shown", n)
		}
		completed := commands.Load()
		kit.Await(t, "more commands", func() bool { return commands.Load() > completed+1000 })
	}
	stop()
	workers.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d commands and %d connections during 6 renewals", commands.Load(), connections.Load())
}

// count increments a counter at the upstream and locks until ctx ends. It fails unless each reply
// is the next number. The client reconnects after every 5 replies, unless staysConnected is true.
func (r *tlsRig) count(ctx context.Context, key string, staysConnected bool, commands, connectCount *atomic.Int64) error {
	background := context.Background()
	lock := key
	for n, connections := int64(0), 0; ctx.Err() == nil; {
		client := redis.NewClient(&redis.Options{Addr: r.proxy.Addr(), TLSConfig: r.clientConfig(), MaxRetries: -1, PoolSize: 1,
			DialTimeout: kit.WaitLimit, ReadTimeout: kit.WaitLimit, ContextTimeoutEnabled: true,
			OnConnect: func(context.Context, *redis.Conn) error {
				connectCount.Add(1)
				if connections++; staysConnected && connections > 1 {
					return fmt.Errorf("%s: its connection is lost", key)
				}
				return nil
			}})
		for i := 0; ctx.Err() == nil && (staysConnected || i < 5); i++ {
			n++
			got, err := client.Incr(background, key).Result()
			if err != nil || got != n {
				return errors.Join(fmt.Errorf("%s: got %d, %w, want %d", key, got, err, n), client.Close())
			}
			validity, err := client.Do(background, "LOCK", lock, "t", "PX", "60000").Int64()
			if err == nil && validity > 0 {
				err = client.Do(background, "UNLOCK", lock, "t").Err()
			}
			if err != nil && kit.IsLate(redistest.RespError(err.Error())) { // the state of this lock is unknown
				lock = fmt.Sprint(key, "-", n)
				continue
			}
			if err != nil || validity <= 0 {
				return errors.Join(fmt.Errorf("%s: LOCK: got %d, %w", lock, validity, err), client.Close())
			}
			commands.Add(3)
		}
		_ = client.Close()
	}
	return nil
}

// TestRenewalOfCAs checks that the certificate authorities that the proxy trusts can change
// while it runs. This holds even if the proxy trusted none of the masters' certificates before.
func TestRenewalOfCAs(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startTLS(t)
	wrong, path := certtest.NewCA(t), t.TempDir()+"/ca.crt"
	kit.Must(t, os.WriteFile(path, readFile(t, wrong.File), 0o600))
	args := append([]string{}, r.args...)
	args[3] = path
	r.proxy = kit.StartProxy(t, r.masters, args...)
	client := r.newClient(t, r.clientConfig())
	if health, err := client.Do(t.Context(), "PROXY", "HEALTH").Text(); err != nil ||
		!strings.Contains(health, "cause:0 of 3 masters vote") {
		t.Errorf("masters that it does not believe: %s, %v", health, err)
	}
	if err := client.Get(t.Context(), "a").Err(); err == nil || !strings.Contains(err.Error(),
		"certificate signed by unknown authority") {
		t.Errorf("an upstream that it does not believe: %v", err)
	}
	kit.Must(t, os.WriteFile(path, readFile(t, r.ca.File), 0o600))
	r.reload(t, reloadedMessage, 1)
	kit.Eventually(t, func() error { return client.Do(context.Background(), "LOCK", "k", "t", "PX", "60000").Err() })
	kit.Eventually(t, func() error { return client.Set(context.Background(), "a", "1", 0).Err() })
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	kit.Must(t, err)
	return content
}
