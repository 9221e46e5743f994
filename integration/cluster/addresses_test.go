//go:build integration

package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/redistest"
)

// tlsArgs returns the arguments of a node that speaks TLS to its clients and to other nodes.
func tlsArgs(ca *certtest.CA, pair certtest.Pair) []string {
	return []string{"--tls-cluster", "yes", "--tls-replication", "yes", "--tls-auth-clients", "no",
		"--tls-cert-file", pair.Cert, "--tls-key-file", pair.Key, "--tls-ca-cert-file", ca.File}
}

// tlsURL returns the URL of a cluster whose nodes speak TLS, with one seed at a host.
func tlsURL(t *testing.T, cluster *kit.Cluster, host string) string {
	t.Helper()
	reply, err := kit.QueryDatabase(cluster.Nodes[0], "0", "CONFIG", "GET", "tls-port")
	kit.Must(t, err)
	return "rediss+cluster://" + net.JoinHostPort(host, reply.([]any)[1].(string))
}

// useThroughProxy lets go-redis and rueidis, which know only the address of the proxy, write and
// read data, and lock. They must learn nodes only at the host.
func (r *rig) useThroughProxy(t *testing.T, addr, host string, config *tls.Config) {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, TLSConfig: config})
	defer client.Close()
	other, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, TLSConfig: config})
	kit.Must(t, err)
	defer other.Close()
	for i := range 50 {
		key, lock := fmt.Sprint("data:", i), fmt.Sprint("lock:", i)
		kit.Must(t, client.Set(t.Context(), key, "v", 0).Err())
		if got, err := other.Do(t.Context(), other.B().Get().Key(key).Build()).ToString(); err != nil || got != "v" {
			t.Fatalf("%s: %s, %v", key, got, err)
		}
		if granted, err := client.SetNX(t.Context(), lock, "a", time.Minute).Result(); err != nil || !granted {
			t.Fatalf("%s: %t, %v", lock, granted, err)
		}
	}
	r.wantLocksAtMasters(t, "lock:7", "a")
	kit.Must(t, client.ForEachShard(t.Context(), func(_ context.Context, node *redis.Client) error {
		if got, _, _ := net.SplitHostPort(node.Options().Addr); got != host {
			return fmt.Errorf("go-redis knows the node %s", node.Options().Addr)
		}
		return nil
	}))
	for addr := range other.Nodes() {
		if got, _, _ := net.SplitHostPort(addr); got != host {
			t.Errorf("rueidis knows the node %s", addr)
		}
	}
	r.cluster.WantOnlyFrom(t, r.proxy)
}

// wantAllUp waits until the proxy has reached all six nodes.
func wantAllUp(t *testing.T, client *redistest.Client) {
	t.Helper()
	kit.Eventually(t, func() error {
		if info := kit.ReplyText(kit.Do(t, client, "PROXY", "INFO")); strings.Count(info, "state=up") != 6 {
			return fmt.Errorf("not all nodes are up:\n%s", info)
		}
		return nil
	})
}

// TestTLS uses a cluster whose nodes and clients speak TLS: the nodes check no client certificates,
// and the clients check the certificate of the proxy for the announced host.
func TestTLS(t *testing.T) {
	ca, clientCA := certtest.NewCA(t), certtest.NewCA(t)
	pair := clientCA.IssueByName(t)
	cluster := kit.StartCluster(t, redistest.InstalledVersion, tlsArgs(ca, ca.Issue(t))...)
	r := startRigAt(t, cluster, "--upstream", tlsURL(t, cluster, "127.0.0.1"), "--ca", ca.File, "--tls-cert", pair.Cert, "--tls-key", pair.Key,
		"--announce", "localhost")
	config := &tls.Config{RootCAs: clientCA.Pool(), MinVersion: tls.VersionTLS12}
	_, port, _ := net.SplitHostPort(r.proxy.Addr())
	r.useThroughProxy(t, "localhost:"+port, "localhost", config)
}

// TestHostnames uses a cluster that sends clients to the names of its nodes. The nodes'
// certificates are valid only for the names, so the proxy must use the names, too.
func TestHostnames(t *testing.T) {
	redistest.SkipShort(t)
	ca := certtest.NewCA(t)
	cluster := kit.StartCluster(t, redistest.InstalledVersion, append(tlsArgs(ca, ca.IssueByName(t)),
		"--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname")...)
	r := startRigAt(t, cluster, "--upstream", tlsURL(t, cluster, "localhost"), "--ca", ca.File)
	client := kit.Connect(t, r.proxy)
	wantAllUp(t, client)
	r.useThroughProxy(t, r.proxy.Addr(), "127.0.0.1", nil)
	for _, command := range []string{"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "ROLE", "INFO"} {
		if reply := kit.ReplyText(kit.Do(t, client, strings.Fields(command)...)); strings.Contains(reply, "localhost") {
			t.Errorf("%s names a node:\n%s", command, reply)
		}
	}
	moved := 0
	for i := range 50 {
		text := kit.ReplyText(kit.Do(t, client, "GET", fmt.Sprint("data:", i)))
		if strings.HasPrefix(text, "MOVED ") {
			moved++
		}
		if strings.Contains(text, "localhost") {
			t.Errorf("a redirect names a node: %s", text)
		}
	}
	if moved == 0 {
		t.Error("no key is at another node")
	}
}

// TestIPv6 uses a cluster, a proxy and clients at ::1.
func TestIPv6(t *testing.T) {
	redistest.SkipShort(t)
	if ln, err := net.Listen("tcp", "[::1]:0"); err != nil {
		redistest.SkipMissing(t, "IPv6: "+err.Error())
	} else {
		_ = ln.Close()
	}
	r := startRigAt(t, kit.StartClusterAt(t, "::1", redistest.InstalledVersion), "--listen", "[::1]:0")
	wantAllUp(t, kit.Connect(t, r.proxy))
	r.useThroughProxy(t, r.proxy.Addr(), "::1", nil)
	_, port, err := net.SplitHostPort(r.proxy.Addr())
	kit.Must(t, err)
	for i := range 20 {
		key := fmt.Sprint("cli:", i)
		if got := strings.TrimSpace(r.cluster.Run(t, "-c", "-h", "::1", "-p", port, "SET", key, "v")); got != "OK" {
			t.Errorf("redis-cli: SET %s: %s", key, got)
		}
	}
}
