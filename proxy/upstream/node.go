package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/nodes"
)

// ErrNoCluster reports that an upstream is no node of a cluster, although its URL says so.
var ErrNoCluster = errors.New("it is not a node of a Redis Cluster; name it with redis:// or rediss://")

var (
	errUnexpectedNode = errors.New("a different node answers at its address")
	errNodeMoved      = errors.New("the cluster reports a different address of the node")
	errNotReported    = errors.New("its address is not known yet")
)

// node is the changing address of a cluster's node.
type node struct {
	onUnreachable  func()        // the function to call when a connection fails
	probeRequested chan struct{} // a value makes Run probe the upstream immediately

	mu       sync.Mutex
	id, addr string
	err      error // the reason why the address is unknown
}

// NewNode returns an upstream like [New], for a node of a cluster. The address is unknown until
// [Upstream.MoveTo] sets it; NewNode ignores the address in the URL. The upstream calls
// onUnreachable whenever it cannot reach the node. onUnreachable must not wait.
func NewNode(url string, timeout time.Duration, log *slog.Logger, onUnreachable func()) (*Upstream, error) {
	u, err := New(url, timeout, log)
	if err != nil {
		return nil, err
	}
	u.node = &node{onUnreachable: onUnreachable, probeRequested: make(chan struct{}, 1), err: errNotReported}
	return u, nil
}

// MoveTo sets the ID and the address of the node. It ends connections to an earlier address. An
// empty ID stands for any node.
func (u *Upstream) MoveTo(id, addr string) {
	if before, changed := u.node.set(id, addr, nil); changed {
		u.beginTerm(before != "")
	}
}

// Forget records the reason why the node's address is unknown, and ends the connections to the
// node.
func (u *Upstream) Forget(cause error) {
	id, _ := u.node.currentNode()
	if before, changed := u.node.set(id, "", cause); changed {
		u.beginTerm(before != "")
	}
}

// set changes the address, and returns the former one.
func (n *node) set(id, addr string, cause error) (previousAddr string, changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	previousAddr, changed = n.addr, n.id != id || n.addr != addr
	n.id, n.addr, n.err = id, addr, cause
	return previousAddr, changed
}

func (n *node) currentNode() (id, addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id, n.addr
}

// locate returns the address, or the reason why it is unknown.
func (n *node) locate() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.addr == "" {
		return "", cmp.Or(n.err, errNotReported)
	}
	return n.addr, nil
}

// shownIDLength is the number of characters of a node ID that names show.
const shownIDLength = 8

// publicName returns the name that clients may see. It contains no address.
func (n *node) publicName() string {
	id, _ := n.currentNode()
	if id == "" {
		return "cluster"
	}
	return "cluster node " + id[:min(shownIDLength, len(id))]
}

// name returns the name for operators.
func (n *node) name() string {
	_, addr := n.currentNode()
	return cmp.Or(addr, n.publicName())
}

// NodeID returns the ID of the node; empty if it is unknown.
func (u *Upstream) NodeID() string {
	id, _ := u.node.currentNode()
	return id
}

// IsNode reports whether the upstream is a node of a cluster.
func (u *Upstream) IsNode() bool { return u.node != nil }

// NodeHost returns the host at which the node is reached.
func (u *Upstream) NodeHost() string {
	_, addr := u.node.currentNode()
	host, _, _ := net.SplitHostPort(addr)
	return host
}

// askNode returns an error if the server is not a node of a cluster, or is a different node than
// expected. It accepts a server that does not report its node ID.
func (u *Upstream) askNode(conn net.Conn) error {
	answer, err := u.exchange(conn, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	id, _ := u.node.currentNode()
	texts := resp.Texts(answer)
	switch {
	case isClusterDisabled(string(answer)):
		return ErrNoCluster
	case len(texts) == 1 && id != "" && texts[0] != id:
		u.node.onUnreachable()
		return errUnexpectedNode
	}
	return nil
}

// isClusterDisabled reports whether an error is that of a server without cluster support.
func isClusterDisabled(text string) bool { return strings.Contains(text, "cluster support disabled") }

// NodeTable asks the node for its table of the cluster's nodes, on the proxy's own connection. If
// nodes have names, it also asks which addresses clients use.
func (u *Upstream) NodeTable(ctx context.Context) (nodes.Table, error) {
	client, err := u.pool.client()
	if err != nil {
		return nodes.Table{}, err
	}
	text, err := client.Do(ctx, "CLUSTER", "NODES").Text()
	switch {
	case err != nil && isClusterDisabled(err.Error()):
		return nodes.Table{}, ErrNoCluster
	case err != nil && strings.HasPrefix(err.Error(), "NOAUTH"), err != nil && strings.HasPrefix(err.Error(), "NOPERM"):
		return nodes.Table{}, fmt.Errorf("CLUSTER NODES: %w; use a login in the upstream's URL that may run CLUSTER NODES", err)
	case err != nil:
		return nodes.Table{}, plainCause(err)
	}
	table, err := nodes.Parse(text, u.NodeHost())
	if err != nil || !table.HasHostnames() {
		return table, err
	}
	// Clients connect to the names or to the IP addresses, as the cluster is configured, and check
	// certificates accordingly. So does the proxy.
	slots, err := client.Do(ctx, "CLUSTER", "SLOTS").Slice()
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "NOPERM"): // the IP addresses remain
	case err != nil:
		return nodes.Table{}, plainCause(err)
	}
	table.FollowEndpoints(slots)
	return table, nil
}
