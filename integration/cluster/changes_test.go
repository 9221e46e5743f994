//go:build integration

package cluster

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// nodeLine returns the words of the line about the node with this address, in the reply of the node
// from to CLUSTER NODES. It returns nil if the reply has no such line.
func (r *rig) nodeLine(t *testing.T, from *redistest.Server, addr string) []string {
	t.Helper()
	reply, err := kit.QueryDatabase(from, "0", "CLUSTER", "NODES")
	kit.Must(t, err)
	for line := range strings.Lines(fmt.Sprint(reply)) {
		if words := strings.Fields(line); len(words) > 7 && strings.HasPrefix(words[1], addr+"@") {
			return words
		}
	}
	return nil
}

// portOf returns the proxy's port for a node ID, or an empty string if the node has no port.
func (r *rig) portOf(t *testing.T, id string) string {
	t.Helper()
	for line := range strings.Lines(fmt.Sprint(kit.Do(t, kit.Connect(t, r.proxy), "CLUSTER", "NODES"))) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == id {
			addr, _, _ := strings.Cut(words[1], "@")
			_, port, err := net.SplitHostPort(addr)
			kit.Must(t, err)
			return port
		}
	}
	return ""
}

// firstMaster returns the cluster's first master, one of its replicas, and the master's ID.
func (r *rig) firstMaster(t *testing.T) (master, replica *redistest.Server, id string) {
	t.Helper()
	master = r.cluster.Nodes[0]
	id = r.nodeLine(t, master, master.Addr())[0]
	for _, node := range r.cluster.Nodes {
		if line := r.nodeLine(t, node, node.Addr()); line[3] == id {
			return master, node, id
		}
	}
	t.Fatal("the first master has no replica")
	return nil, nil, ""
}

// TestNodeKill kills a master under load. Its replica takes over, clients find the new master
// through the proxy, and no lock is granted twice. Then the node returns.
func TestNodeKill(t *testing.T) {
	redistest.SkipShort(t)
	r := startRig(t)
	master, _, id := r.firstMaster(t)
	port := r.portOf(t, id)
	l := startLoad(t, r.proxy.Addr())
	l.awaitWrites(t)
	kit.Must(t, master.Kill())
	began := time.Now()
	// Before the failover, the proxy also grants locks at the port of the dead node.
	dead := kit.Dial(t, "127.0.0.1:"+port)
	if reply := kit.ReplyText(kit.Do(t, dead, "HELLO", "3")); !strings.HasPrefix(reply, "CLUSTERDOWN upstream cluster node "+id[:8]) {
		t.Errorf("HELLO: %s", reply)
	}
	kit.Want(t, dead, "OK", "SET", "lock:dead", "a", "NX", "PX", "60000")
	kit.WantGrant(t, dead, "LOCK", "lock:other", "a", "PX", "60000")
	if reply, err := dead.Do("GET", "data:1"); err == nil {
		t.Errorf("GET at the port of a dead node: %v", reply)
	}
	// A new client learns the nodes at the listen address of the proxy.
	kit.Eventually(t, func() error {
		reply, err := kit.Connect(t, r.proxy).Do("CLUSTER", "SLOTS")
		if err == nil && !strings.HasPrefix(fmt.Sprint(reply), "[[") {
			err = fmt.Errorf("%v", reply)
		}
		return err
	})
	if l.awaitWrites(t); t.Failed() {
		t.Log(r.cluster.Nodes[3].Log(), r.cluster.Nodes[4].Log(), r.cluster.Nodes[5].Log())
	}
	t.Logf("all slots can be written %v after the crash", time.Since(began).Round(time.Millisecond))
	// The port of the dead node sends clients to the nodes that serve the keys.
	var moved *redistest.Client
	kit.Eventually(t, func() error {
		moved = kit.Dial(t, "127.0.0.1:"+port)
		reply, err := moved.Do("GET", "b")
		if text := kit.ReplyText(reply); err == nil && !strings.HasPrefix(text, "MOVED 3300 127.0.0.1:") {
			err = errors.New(text)
		}
		return err
	})
	kit.WantPrefix(t, moved, "EVAL|return 1|1|a", "MOVED 15495 127.0.0.1:")
	kit.Want(t, moved, "OK", "SET", "lock:moved", "a", "NX", "PX", "60000")
	if reply, err := moved.Do("PING"); err == nil {
		t.Errorf("PING at the port of a dead node: %v", reply)
	}
	r.cluster.WantOnlyFrom(t, r.proxy)
	kit.Must(t, master.RestartWithData())
	kit.Eventually(t, func() error {
		client := kit.Dial(t, "127.0.0.1:"+port)
		reply, err := client.Do("ROLE")
		if err == nil && !strings.HasPrefix(fmt.Sprint(reply), "[slave") {
			err = fmt.Errorf("%v", reply)
		}
		return err
	})
	l.awaitWrites(t)
	l.end(t)
}

// TestFailover lets a replica take over under load. No node fails, so clients get only errors that
// a cluster returns during a failover.
func TestFailover(t *testing.T) {
	r := startRig(t)
	_, replica, _ := r.firstMaster(t)
	l := startLoad(t, r.proxy.Addr())
	l.awaitWrites(t)
	kit.Must(t, kit.SendToMaster(replica, "CLUSTER", "FAILOVER"))
	kit.Await(t, "the failover", func() bool {
		reply, err := kit.QueryDatabase(replica, "0", "ROLE")
		return err == nil && strings.HasPrefix(fmt.Sprint(reply), "[master")
	})
	l.awaitWrites(t)
	r.cluster.WantOnlyFrom(t, r.proxy)
	l.end(t)
}

// TestResharding moves a thousand slots under load.
func TestResharding(t *testing.T) {
	redistest.SkipShort(t)
	r := startRig(t)
	source, target := r.cluster.Nodes[0], r.cluster.Nodes[1]
	l := startLoad(t, r.proxy.Addr())
	l.awaitWrites(t)
	r.reshard(t, source, target, 1000)
	l.awaitWrites(t)
	r.cluster.WantOnlyFrom(t, r.proxy)
	l.end(t)
}

func (r *rig) reshard(t *testing.T, source, target *redistest.Server, slots int) {
	t.Helper()
	r.cluster.Run(t, "--cluster", "reshard", target.Addr(), "--cluster-from", r.nodeLine(t, source, source.Addr())[0],
		"--cluster-to", r.nodeLine(t, target, target.Addr())[0], "--cluster-slots", fmt.Sprint(slots), "--cluster-yes")
}

// TestNodeAdditionAndRemoval adds a master, moves slots to it, moves them away and removes it,
// under load. Afterwards, the proxy closes the client connections at the port of the removed node.
func TestNodeAdditionAndRemoval(t *testing.T) {
	redistest.SkipShort(t)
	r := startRig(t)
	l := startLoad(t, r.proxy.Addr())
	l.awaitWrites(t)
	first := r.cluster.Nodes[0]
	newNode := r.cluster.StartNode(t, redistest.InstalledVersion)
	began := time.Now()
	r.cluster.Run(t, "--cluster", "add-node", newNode.Addr(), first.Addr())
	id := ""
	kit.Eventually(t, func() error {
		if line := r.nodeLine(t, first, newNode.Addr()); line == nil || strings.Contains(line[2], "handshake") {
			return fmt.Errorf("the node is not added: %v", line)
		} else if id = line[0]; r.portOf(t, id) == "" {
			return fmt.Errorf("the proxy has no port for %s", id)
		}
		return nil
	})
	t.Logf("the proxy serves the new node after %v", time.Since(began).Round(time.Millisecond))
	port := r.portOf(t, id)
	kit.Eventually(t, func() error { // all nodes know the new node
		for _, node := range r.cluster.Nodes {
			if r.nodeLine(t, node, newNode.Addr()) == nil {
				return fmt.Errorf("%s does not know the node", node.Addr())
			}
			if info, err := kit.QueryDatabase(node, "0", "CLUSTER", "INFO"); err != nil ||
				!strings.Contains(fmt.Sprint(info), "cluster_state:ok") {
				return fmt.Errorf("%s: %v, %v", node.Addr(), info, err)
			}
		}
		return nil
	})
	r.reshard(t, first, newNode, 500)
	l.awaitWrites(t)
	client := kit.Dial(t, "127.0.0.1:"+port)
	kit.WantPrefix(t, client, "CLUSTER MYID", id)
	r.cluster.WantOnlyFrom(t, r.proxy)
	r.reshard(t, newNode, first, 500)
	l.awaitWrites(t)
	r.cluster.Run(t, "--cluster", "del-node", first.Addr(), id)
	kit.Eventually(t, func() error { // the proxy disconnects the clients of the removed node
		_, err := client.Do("PING")
		if err != nil {
			return nil
		}
		return fmt.Errorf("the port of the removed node still answers")
	})
	removedNodePort := kit.Dial(t, "127.0.0.1:"+port)
	kit.WantGrant(t, removedNodePort, "LOCK", "lock:gone", "a", "PX", "60000")
	if reply, err := removedNodePort.Do("PING"); err == nil {
		t.Errorf("PING at the port of a removed node: %v", reply)
	}
	if nodes := fmt.Sprint(kit.Do(t, kit.Connect(t, r.proxy), "CLUSTER", "NODES")); strings.Contains(nodes, id) {
		t.Errorf("the removed node is listed:\n%s", nodes)
	}
	l.awaitWrites(t)
	l.end(t)
	kit.WantLogged(t, r.proxy, "a node has left the cluster")
}

// TestNodeAddressChange restarts a replica under another port, with the same node ID. The node
// keeps its port at the proxy.
func TestNodeAddressChange(t *testing.T) {
	redistest.SkipShort(t)
	r := startRig(t)
	_, replica, _ := r.firstMaster(t)
	id := r.nodeLine(t, replica, replica.Addr())[0]
	port := r.portOf(t, id)
	kit.Must(t, kit.SendToMaster(replica, "CONFIG", "SET", "port", kit.FreePort(t)))
	kit.WantLogged(t, r.proxy, "a node of the cluster has a different address")
	kit.Eventually(t, func() error {
		if now := r.portOf(t, id); now != port {
			return fmt.Errorf("the node has the port %q, before it had %s", now, port)
		}
		reply, err := kit.Dial(t, "127.0.0.1:"+port).Do("CLUSTER", "MYID")
		if err == nil && reply != id {
			err = fmt.Errorf("another node answers: %v", reply)
		}
		return err
	})
}
