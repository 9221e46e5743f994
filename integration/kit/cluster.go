package kit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/clientlist"
	"redlock-proxy/internal/redistest"
)

// nodeTimeout is the time after which the nodes of a test's cluster regard another node as failed.
const nodeTimeout = 2 * time.Second

// nodeID matches IDs of nodes.
var nodeID = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// clusterPorts is the distance from the first to the last of the ports that a proxy of a cluster
// gets for its nodes.
const clusterPorts = 40

// Cluster is a Redis Cluster of real servers.
type Cluster struct {
	// Nodes holds the servers: initially the three masters, and then a replica of each. StartNode
	// appends further servers.
	Nodes []*redistest.Server

	bind string // the address of all nodes; empty: 127.0.0.1
}

// StartCluster starts a cluster of three masters with a replica each. Its servers have these
// arguments, and are closed when the test ends.
func StartCluster(t *testing.T, version string, args ...string) *Cluster {
	t.Helper()
	return StartClusterAt(t, "", version, args...)
}

// StartClusterAt starts a cluster like StartCluster, whose nodes listen on the address bind.
func StartClusterAt(t *testing.T, bind, version string, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{bind: bind}
	create := []string{"--cluster", "create"}
	for range 6 {
		// redis-cli writes IPv6 addresses without brackets.
		create = append(create, strings.NewReplacer("[", "", "]", "").Replace(c.StartNode(t, version, args...).Addr()))
	}
	c.Run(t, append(create, "--cluster-replicas", "1", "--cluster-yes")...)
	Await(t, "a cluster that serves all slots", func() bool {
		return !slices.ContainsFunc(c.Nodes, func(node *redistest.Server) bool {
			info, err := QueryDatabase(node, "0", "CLUSTER", "INFO")
			nodes, err2 := QueryDatabase(node, "0", "CLUSTER", "NODES")
			role, err3 := QueryDatabase(node, "0", "INFO", "replication")
			// CLUSTER SLOTS lacks replicas that have just started.
			slots, err4 := QueryDatabase(node, "0", "CLUSTER", "SLOTS")
			return errors.Join(err, err2, err3, err4) != nil || len(nodeID.FindAllString(fmt.Sprint(slots), -1)) != 6 || !strings.Contains(fmt.Sprint(info), "cluster_state:ok") ||
				strings.Count(fmt.Sprint(nodes), "slave ") != 3 ||
				!strings.Contains(fmt.Sprint(role), "state=online") && !strings.Contains(fmt.Sprint(role), "master_link_status:up")
		})
	})
	return c
}

// StartNode starts a server that can become a node of the cluster, and adds it to Nodes.
func (c *Cluster) StartNode(t *testing.T, version string, args ...string) *redistest.Server {
	t.Helper()
	args = append(slices.Clone(args), "--cluster-enabled", "yes", "--cluster-node-timeout",
		strconv.Itoa(int(nodeTimeout.Milliseconds())), "--repl-ping-replica-period", "1")
	// Redis 6 has no such setting: its cluster port is the port plus 10000.
	if !strings.HasPrefix(version, "redis-6") {
		args = append(args, "--cluster-port", FreePort(t))
	}
	if slices.Contains(args, "--tls-cluster") {
		args = append(args, "--tls-port", FreePort(t))
	}
	node := startNode(t, redistest.Options{Version: version, Bind: c.bind, ExtraArgs: args})
	c.Nodes = append(c.Nodes, node)
	return node
}

// startNode starts a server. It may need several attempts, because the cluster port of Redis 6 is
// fixed, and another process may use it.
func startNode(t *testing.T, opts redistest.Options) *redistest.Server {
	t.Helper()
	for range 5 {
		if node, err := redistest.Start(opts); err == nil {
			t.Cleanup(func() { NoError(t, node.Close()) })
			return node
		}
	}
	return redistest.New(t, opts)
}

// Run runs redis-cli with these arguments, which must succeed.
func (c *Cluster) Run(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.Command("redis-cli", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %s: %v\n…%s", strings.Join(args, " "), err, output[max(0, len(output)-1000):])
	}
	return string(output)
}

// URL returns the URL of the cluster as upstream, with at most two seeds.
func (c *Cluster) URL() string {
	url := "redis+cluster://" + c.Nodes[0].Addr()
	if len(c.Nodes) > 1 {
		url += "," + c.Nodes[1].Addr()
	}
	return url
}

// StartProxy starts a proxy of the cluster, with a range of ports for its nodes. Only the first
// port of the range is known to be free.
func (c *Cluster) StartProxy(t *testing.T, masters []string, args ...string) *harness.Proxy {
	t.Helper()
	first, err := strconv.Atoi(FreePort(t))
	Must(t, err)
	ports := fmt.Sprintf("%d-%d", first, min(first+clusterPorts, 32767))
	return StartProxy(t, masters, append([]string{"--upstream", c.URL(), "--cluster-ports", ports}, args...)...)
}

// CheckNoKeys returns an error if a node that runs has a key that matches a pattern.
func (c *Cluster) CheckNoKeys(pattern string) error {
	for _, node := range c.Nodes {
		if reply, err := QueryDatabase(node, "0", "KEYS", pattern); err == nil && fmt.Sprint(reply) != "[]" {
			return fmt.Errorf("node %s has keys %s: %v", node.Addr(), pattern, reply)
		}
	}
	return nil
}

// WantOnlyFrom fails the test if a node has a client that is neither one of these proxies, nor
// another node, nor this test. A connection may end after the node has listed it and before
// WantOnlyFrom lists the proxy's connections. So only a client that stays counts.
func (c *Cluster) WantOnlyFrom(t *testing.T, proxies ...*harness.Proxy) {
	t.Helper()
	Eventually(t, func() error {
		clients, own := c.clientAddrs(), map[string]bool{}
		for _, proxy := range proxies {
			for _, addr := range localAddrs(t, proxy.PID()) {
				own[addr] = true
			}
		}
		for _, addr := range clients {
			if !own[addr] {
				return fmt.Errorf("a node has a client at %s, which is no proxy", addr)
			}
		}
		return nil
	})
}

// clientAddrs returns the addresses of the clients of all nodes, except other nodes and this test.
func (c *Cluster) clientAddrs() (addrs []string) {
	for _, node := range c.Nodes {
		reply, err := QueryDatabase(node, "0", "CLIENT", "LIST")
		if err != nil { // the node was killed
			continue
		}
		for _, client := range clientlist.Parse(fmt.Sprint(reply)) {
			// During MIGRATE, a node sends RESTORE as a client of another node.
			isNode := strings.ContainsAny(client["flags"], "SM") || strings.HasPrefix(client["cmd"], "restore")
			isOwnQuery := client["cmd"] == "client|list" || client["cmd"] == "client"
			if !isNode && !isOwnQuery {
				addrs = append(addrs, client.Addr())
			}
		}
	}
	return addrs
}

// localAddrs returns the local addresses of the connections of a process.
func localAddrs(t *testing.T, pid int) (addrs []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	Must(t, err)
	sockets := map[string]bool{}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && strings.HasPrefix(target, "socket:[") {
			sockets[strings.Trim(target, "socket:[]")] = true
		}
	}
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		Must(t, err)
		for line := range strings.Lines(string(table)) {
			if words := strings.Fields(line); len(words) >= 10 && sockets[words[9]] {
				addrs = append(addrs, parseProcAddr(words[1]))
			}
		}
	}
	return addrs
}

// parseProcAddr returns an address of /proc/net/tcp as host:port. In that file, each group of
// four bytes of an IP address is in the order of the machine, which is little-endian.
func parseProcAddr(text string) string {
	host, port, _ := strings.Cut(text, ":")
	ip, _ := hex.DecodeString(host)
	for group := range slices.Chunk(ip, 4) {
		slices.Reverse(group)
	}
	addr, _ := netip.AddrFromSlice(ip)
	number, _ := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)).String()
}
