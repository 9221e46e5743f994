//go:build integration

package relay

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
)

// startMaintenanceServer starts a server that announces planned maintenance, like Redis Cloud. The
// given Redis executes all commands except CLIENT MAINT_NOTIFICATIONS, which the server grants.
// After the reply to GET maintenance, the server sends its own address to the client as the new
// address.
func startMaintenanceServer(t *testing.T, redis *redistest.Server) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	var connections sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); connections.Wait() })
	connections.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", redis.Addr())
			if err != nil {
				_ = conn.Close()
				continue
			}
			connections.Go(func() { serveMaintenance(conn, server, ln.Addr().String()) })
		}
	})
	return ln.Addr().String()
}

func serveMaintenance(client, server net.Conn, addr string) {
	defer client.Close()
	defer server.Close()
	_ = client.SetDeadline(time.Now().Add(kit.WaitLimit))
	reader := bufio.NewReader(client)
	var reply []byte
	for {
		command, err := redistest.ReadReply(reader)
		words, ok := command.([]any)
		if err != nil || !ok {
			return
		}
		var args []string
		for _, word := range words {
			args = append(args, fmt.Sprint(word))
		}
		text := strings.ToUpper(strings.Join(args, " "))
		if reply = []byte("+OK\r\n"); !strings.HasPrefix(text, "CLIENT MAINT_NOTIFICATIONS ON") {
			if reply, err = forward(server, args); err != nil {
				return
			}
		}
		if text == "GET MAINTENANCE" {
			reply = fmt.Appendf(reply, ">4\r\n$6\r\nMOVING\r\n:1\r\n:10\r\n$%d\r\n%s\r\n", len(addr), addr)
		}
		for i := range reply { // byte by byte, so that the proxy reads it in pieces
			if _, err := client.Write(reply[i : i+1]); err != nil {
				return
			}
		}
	}
}

// forward sends a command and returns the bytes of its reply.
func forward(server net.Conn, words []string) (reply []byte, err error) {
	if _, err := server.Write(redistest.AppendCommand(nil, words...)); err != nil {
		return nil, err
	}
	for scanner, isComplete := (resp.ReplyScanner{}), false; !isComplete; {
		var buf [4096]byte
		n, err := server.Read(buf[:])
		if err != nil {
			return nil, err
		}
		if _, isComplete, err = scanner.Scan(buf[:n]); err != nil {
			return nil, err
		}
		reply = append(reply, buf[:n]...)
	}
	return reply, nil
}

// startProxyOf starts a proxy with lock keys and an upstream at an address.
func startProxyOf(t *testing.T, upstream string, args ...string) *harness.Proxy {
	t.Helper()
	return kit.StartProxy(t, redistest.URLs([]*redistest.Server{kit.StartRedis(t)}),
		append(args, "--lock-keys", "lock:*", "--upstream", "redis://"+upstream)...)
}

// wantNoLocks fails the test if a server has a lock key.
func wantNoLocks(t *testing.T, server *redistest.Server, login ...string) {
	t.Helper()
	client := dial(t, server.Addr())
	if len(login) > 0 {
		kit.Want(t, client, "OK", append([]string{"AUTH"}, login...)...)
	}
	if keys := fmt.Sprint(kit.Do(t, client, "KEYS", "lock:*")); keys != "[]" {
		t.Errorf("%s has lock keys: %s", server.Addr(), keys)
	}
}

// TestMaintenanceWithoutRedirect covers a client that requests notifications of maintenance, as
// go-redis does by default. The client receives the upstream's own address as the new address. The
// client stays connected to the proxy, and locks through it.
func TestMaintenanceWithoutRedirect(t *testing.T) {
	server := kit.StartRedis(t)
	proxy := startProxyOf(t, startMaintenanceServer(t, server))
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), PoolSize: 1})
	defer client.Close()
	kit.Must(t, client.Set(t.Context(), "data", "v", 0).Err())
	kit.NoError(t, ignoreNil(client.Get(t.Context(), "maintenance").Err()))
	for i := range 50 {
		if granted, err := client.SetNX(t.Context(), fmt.Sprint("lock:", i), "a", time.Minute).Result(); err != nil || !granted {
			t.Fatalf("lock %d: %v, %v", i, granted, err)
		}
		kit.Must(t, client.Get(t.Context(), "data").Err())
		time.Sleep(10 * time.Millisecond) // the client might change its address in this time
	}
	wantNoLocks(t, server)
	kit.WantLogged(t, proxy, "what=MOVING")

	// The server does not know this subcommand, under either name.
	proxyClient, serverClient := dial(t, proxy.Addr()), dial(t, server.Addr())
	for _, words := range []string{"CLIENT MAINT_NOTIFICATIONS ON", "MULTI", "CLIENT MAINT_NOTIFICATIONS ON", "EXEC"} {
		want := kit.ReplyText(kit.Do(t, serverClient, strings.Fields(words)...))
		kit.WantPrefix(t, proxyClient, words, strings.ReplaceAll(want, "MAINT_NOTIFICATIONS", "MAINT_NOTIFICATIONS-IS-NOT-FOR-LOCK-KEYS"))
	}
	kit.WantPrefix(t, serverClient, "CLIENT MAINT_NOTIFICATIONS ON", "ERR ")
	kit.Do(t, proxyClient, "HELLO", "3")
	kit.Want(t, proxyClient, nil, "GET", "maintenance")
	kit.Want(t, proxyClient, "PONG", "PING")
}

func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// TestValkeyRedirect covers a client that asks a Valkey for redirects to the master. After a
// failover of the upstream, the former master would redirect the client. The client stays at the
// proxy, and locks through it.
func TestValkeyRedirect(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	valkey := redistest.NewestOf(t, "valkey")
	master := redistest.New(t, redistest.Options{Version: valkey})
	replica := kit.StartReplica(t, master)
	proxy := startProxyOf(t, master.Addr())
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{proxy.Addr()}, DisableCache: true, Standalone: rueidis.StandaloneOption{EnableRedirect: true},
	})
	kit.Must(t, err)
	defer client.Close()
	kit.Must(t, client.Do(t.Context(), client.B().Set().Key("data").Value("v").Build()).Error())
	kit.Await(t, "the failover", func() bool {
		_ = client.Do(t.Context(), client.B().Get().Key("data").Build()).Error()
		reply, err := dial(t, master.Addr()).Do("FAILOVER", "TO", "127.0.0.1", portOf(replica))
		return err == nil && reply == "OK"
	})
	kit.Await(t, "the end of the failover", func() bool {
		reply, err := dial(t, replica.Addr()).Do("ROLE")
		return err == nil && strings.HasPrefix(fmt.Sprint(reply), "[master")
	})
	for i := range 20 {
		_ = client.Do(t.Context(), client.B().Set().Key("data").Value("w").Build()).Error()
		err := client.Do(t.Context(), client.B().Set().Key(fmt.Sprint("lock:",
			i)).Value("a").Nx().Px(time.Minute).Build()).Error()
		kit.Must(t, err)
	}
	wantNoLocks(t, replica)
	proxyClient := dial(t, proxy.Addr()) // the former master would redirect this client
	kit.WantPrefix(t, proxyClient, "CLIENT CAPA redirect", "OK")
	kit.WantPrefix(t, proxyClient, "SET data v", "READONLY")
}

func portOf(server *redistest.Server) string {
	_, port, _ := net.SplitHostPort(server.Addr())
	return port
}

// startCluster starts a cluster of three nodes. args holds further arguments of the nodes; args[1],
// if any, is their password.
func startCluster(t *testing.T, args ...string) []*redistest.Server {
	t.Helper()
	var nodes []*redistest.Server
	command := []string{"--cluster", "create"}
	for range 3 {
		node := redistest.New(t, redistest.Options{
			Version: redistest.InstalledVersion, ExtraArgs: append(slices.Clone(args), "--cluster-enabled", "yes",
				"--cluster-port", kit.FreePort(t)),
		})
		nodes, command = append(nodes, node), append(command, node.Addr())
	}
	create := exec.Command("redis-cli", append(command, "--cluster-yes")...)
	if len(args) > 1 { // redis-cli needs the password
		create.Env = append(os.Environ(), "REDISCLI_AUTH="+args[1])
	}
	if output, err := create.CombinedOutput(); err != nil {
		t.Fatalf("redis-cli: %v\n%s", err, output)
	}
	return nodes
}

// TestRefusedCluster checks that the proxy refuses a cluster as upstream, with an error that
// names the remedy. Without lock keys it accepts the cluster.
func TestRefusedCluster(t *testing.T) {
	redistest.SkipShort(t)
	nodes := startCluster(t)
	master := kit.StartRedis(t)
	proxy, err := harness.StartProxy(harness.ProxyOptions{
		Masters: []string{master.URL()}, Args: []string{"--lock-keys", "lock:*", "--upstream", nodes[0].URL()},
	})
	if err == nil {
		kit.NoError(t, proxy.Close())
		t.Error("it serves")
	} else if !strings.Contains(err.Error(), "node of a Redis Cluster") ||
		!strings.Contains(err.Error(), "or a standalone Redis") {
		t.Errorf("refused with %v", err)
	}
	output, err := kit.ProxyCommand(t, "check", "--master", master.URL(), "--lock-keys", "lock:*", "--upstream",
		nodes[0].URL()).Output()
	if text := string(output); err == nil || !strings.Contains(text, "verdict: unsafe") ||
		!strings.Contains(text, "node of a Redis Cluster") {
		t.Errorf("check: %v\n%s", err, output)
	}
	kit.StartProxy(t, []string{master.URL()}, "--upstream", nodes[0].URL())
}

// TestClusterWithoutRedirects covers a proxy that cannot find out, without a login, that its
// upstream is a cluster. Even then, cluster clients are not redirected to the cluster's nodes.
// Other clients get an error instead of MOVED, so that they retry. When a client logs in, the proxy
// checks again with that login, and refuses the cluster.
func TestClusterWithoutRedirects(t *testing.T) {
	t.Parallel()
	login := []string{"--requirepass", "secret"}
	nodes := startCluster(t, append(login, "--masterauth", "secret")...)
	proxy := startProxyOf(t, nodes[0].Addr())
	proxyClient := dial(t, proxy.Addr())
	kit.WantPrefix(t, proxyClient, "AUTH secret", "OK")
	for _, words := range []string{"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES"} {
		kit.WantPrefix(t, proxyClient, words, "ERR This instance has cluster support disabled")
	}

	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{proxy.Addr()}, Password: "secret"})
	defer cluster.Close()
	movingClient, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{proxy.Addr()}, Password: "secret",
		DisableRetry: true})
	if err == nil {
		defer movingClient.Close()
	}
	for i := range 20 {
		key := fmt.Sprint("lock:", i)
		_ = cluster.SetNX(t.Context(), key, "a", time.Minute).Err()
		if err == nil {
			_ = movingClient.Do(t.Context(), movingClient.B().Set().Key(key).Value("b").Nx().Px(time.Minute).Build()).Error()
			_ = movingClient.Do(t.Context(), movingClient.B().Set().Key(fmt.Sprint("data:", i)).Value("v").Build()).Error()
		}
	}
	for _, node := range nodes {
		wantNoLocks(t, node, "secret")
	}
	const refusal = "it is a node of a Redis Cluster"
	var connErr error
	// The proxy disconnects the client that connected before the proxy noticed the cluster.
	for until := time.Now().Add(kit.WaitLimit); connErr == nil && time.Now().Before(until); {
		_, connErr = proxyClient.Do("SET", fmt.Sprint("data:", rand.Int()), "v")
	}
	if connErr == nil {
		t.Error("a client stays connected to the cluster")
	}
	if reply := kit.ReplyText(kit.Do(t, dial(t, proxy.Addr()), "AUTH", "secret")); !strings.Contains(reply, refusal) {
		t.Errorf("AUTH: %s", reply)
	}
	kit.WantLogged(t, proxy, "what=MOVED")
	// Clients may get the error before it is logged.
	line, err := proxy.WaitLog(`msg="upstream down"`, kit.WaitLimit)
	kit.Must(t, err)
	if !strings.Contains(line, refusal) {
		t.Errorf("logged %s", line)
	}
	if got := check(t, nodes[0]); !strings.Contains(got, "cannot tell whether it is a node of a Redis Cluster") {
		t.Errorf("check: %s", got)
	}
}

// check returns the output of redlock-proxy check for an upstream.
func check(t *testing.T, upstream *redistest.Server) string {
	t.Helper()
	output, _ := kit.ProxyCommand(t, "check", "--master", kit.StartRedis(t).URL(), "--lock-keys", "lock:*", "--upstream",
		upstream.URL()).Output()
	return string(output)
}

// TestClaimedCluster lets a script return MOVED. The proxy still uses a server without a cluster.
func TestClaimedCluster(t *testing.T) {
	proxy := startProxyOf(t, kit.StartRedis(t, "--requirepass", "secret").Addr())
	clientA, clientB := dial(t, proxy.Addr()), dial(t, proxy.Addr())
	for _, client := range []*redistest.Client{clientB, clientA} {
		kit.WantPrefix(t, client, "AUTH secret", "OK")
	}
	for range 3 {
		if reply := kit.ReplyText(kit.Do(t, clientA, "EVAL", "return redis.error_reply('MOVED 1 other:6379')",
			"0")); !strings.HasPrefix(reply, "TRYAGAIN ") {
			t.Fatalf("EVAL: %s", reply)
		}
		for _, client := range []*redistest.Client{clientA, clientB, dial(t, proxy.Addr())} {
			kit.WantPrefix(t, client, "AUTH secret", "OK")
			kit.WantPrefix(t, client, "SET data:1 v", "OK")
			kit.WantPrefix(t, client, "MULTI", "OK")
			kit.WantPrefix(t, client, "DISCARD", "OK")
		}
	}
}

// TestHiddenReplication checks that INFO and ROLE name no other server, both with locks on the
// masters and with locks at the upstream.
func TestHiddenReplication(t *testing.T) {
	redistest.SkipShort(t)
	master := kit.StartRedis(t)
	replica := kit.StartReplica(t, master)
	for _, c := range []struct {
		upstream, otherServer *redistest.Server
		args                  []string
	}{
		{master, replica, nil}, {replica, master, nil},
		{master, replica, []string{"--move-from-upstream"}},
	} {
		client := dial(t, startProxyOf(t, c.upstream.Addr(), c.args...).Addr())
		for _, words := range [][]string{{"INFO"}, {"INFO", "replication"}, {"ROLE"}} {
			if reply := fmt.Sprint(kit.Do(t, client, words...)); reply == "" || strings.Contains(reply, portOf(c.otherServer)) {
				t.Errorf("%v: %v names another server:\n%s", c.args, words, reply)
			}
			kit.WantPrefix(t, client, "MULTI", "OK")
			kit.WantPrefix(t, client, strings.Join(words, " "), "ERR "+words[0]+" inside MULTI is not allowed")
			kit.WantPrefix(t, client, "EXEC", "EXECABORT")
		}
		kit.WantPrefix(t, client, "MULTI", "OK")
		kit.WantPrefix(t, client, "INFO server", "QUEUED")
		if reply := fmt.Sprint(kit.Do(t, client, "EXEC")); !strings.Contains(reply, "redis_version") {
			t.Errorf("EXEC of INFO server: %s", reply)
		}
	}
}
