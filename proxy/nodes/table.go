package nodes

import (
	"cmp"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
)

// SlotCount is the number of slots of a cluster.
const SlotCount = 16384

// maxID limits the length of a node ID. Redis' IDs have 40 characters.
const maxID = 64

// ErrMalformed reports that a reply is not a table of nodes.
var ErrMalformed = errors.New("CLUSTER NODES: the reply has an unknown form")

// Node is a node of a cluster.
type Node struct {
	// ID is the node ID, which stays the same when the node restarts under another address.
	ID string
	// Host is the IP address that the node announces, Hostname its name. Each may be empty.
	Host, Hostname string
	// ByHostname is set if clients reach the node by its Hostname.
	ByHostname bool
	// Port is the port for clients.
	Port int
	// MasterID is the ID of the master that the node replicates; empty for a master.
	MasterID string
	// Failed is set if the cluster has agreed that the node has failed.
	Failed bool
	// Slots holds the slots that the node serves.
	Slots []Range
}

// Range is a range of slots.
type Range struct{ First, Last int }

// Addr returns the address at which the node is reached, host:port.
func (n Node) Addr() string {
	host := cmp.Or(n.Host, n.Hostname)
	if n.ByHostname && n.Hostname != "" {
		host = n.Hostname
	}
	return net.JoinHostPort(host, strconv.Itoa(n.Port))
}

// IsMaster reports whether the node is a master.
func (n Node) IsMaster() bool { return n.MasterID == "" }

// Table is the table of nodes of one node, or of several nodes together.
type Table struct {
	// Nodes holds the nodes, in the order of their addresses.
	Nodes []Node
	// Self is the ID of the node whose table it is; empty for several nodes.
	Self string
	// Epoch is the largest configuration epoch in the table.
	Epoch int64
}

// Parse reads a reply to CLUSTER NODES. It leaves out nodes whose address is unknown or has no port
// for clients, or whose ID is not final yet. host is the host at which the replying node was
// reached: that node may not know its own address.
func Parse(text, host string) (Table, error) {
	var table Table
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 8 || len(words[0]) > maxID {
			return Table{}, ErrMalformed
		}
		flags := strings.Split(words[2], ",")
		has := func(flag string) bool { return slices.Contains(flags, flag) }
		if has("myself") {
			table.Self = words[0]
		}
		if has("handshake") || has("noaddr") {
			continue
		}
		node, err := parseNode(words)
		if err != nil {
			return Table{}, err
		}
		if has("myself") {
			node.Host = cmp.Or(node.Host, host)
		}
		if node.Host == "" && node.Hostname == "" || node.Port == 0 { // Port: if it accepts only TLS
			continue
		}
		epoch, err := strconv.ParseInt(words[6], 10, 64)
		if err != nil {
			return Table{}, ErrMalformed
		}
		node.Failed = has("fail")
		table.Epoch = max(table.Epoch, epoch)
		table.Nodes = append(table.Nodes, node)
	}
	if table.Self == "" {
		return Table{}, ErrMalformed
	}
	sortByAddr(table.Nodes)
	return table, nil
}

// HasHostnames reports whether a node announces a name.
func (t Table) HasHostnames() bool {
	return slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.Hostname != "" })
}

// FollowEndpoints makes the proxy reach nodes by their names if a reply to CLUSTER SLOTS sends
// clients to a name of a node (cluster-preferred-endpoint-type hostname).
func (t *Table) FollowEndpoints(slots []any) {
	if !t.sendsToHostname(slots) {
		return
	}
	for i := range t.Nodes {
		t.Nodes[i].ByHostname = true
	}
}

// sendsToHostname reports whether a reply to CLUSTER SLOTS names a node by its Hostname: each range
// of slots has a list for each node, with its host, its port and its ID.
func (t Table) sendsToHostname(slots []any) bool {
	for _, slotRange := range slots {
		parts, _ := slotRange.([]any)
		for _, part := range parts {
			node, _ := part.([]any)
			if len(node) < 3 {
				continue
			}
			named := func(n Node) bool { return n.ID == node[2] && n.Hostname != "" && n.Hostname == node[0] }
			if slices.ContainsFunc(t.Nodes, named) {
				return true
			}
		}
	}
	return false
}

// parseNode reads the words of a line: ID, address, flags, master, two times, epoch, link, slots.
func parseNode(words []string) (Node, error) {
	node := Node{ID: words[0]}
	if words[3] != "-" {
		node.MasterID = words[3]
	}
	var ok bool
	if node.Host, node.Port, node.Hostname, ok = SplitAddr(words[1]); !ok {
		return Node{}, ErrMalformed
	}
	for _, word := range words[8:] {
		if strings.HasPrefix(word, "[") { // a slot that is being moved; it is also in a range
			continue
		}
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err != nil || err2 != nil || from > to || to >= SlotCount {
			return Node{}, ErrMalformed
		}
		node.Slots = append(node.Slots, Range{int(from), int(to)})
	}
	return node, nil
}

// SplitAddr splits the address in a line of CLUSTER NODES: ip:port, ip:port@bus-port, or
// ip:port@bus-port,hostname, possibly followed by more fields.
func SplitAddr(text string) (host string, port int, hostname string, ok bool) {
	addr, rest, _ := strings.Cut(text, "@")
	if _, rest, ok = strings.Cut(rest, ","); ok {
		hostname, _, _ = strings.Cut(rest, ",")
	}
	if strings.Contains(hostname, "=") { // a field of another kind
		hostname = ""
	}
	host, port, ok = SplitHostPort(addr)
	return host, port, hostname, ok
}

// SplitHostPort splits an address as a cluster writes it: an IPv6 host has no brackets.
func SplitHostPort(addr string) (host string, port int, ok bool) {
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(addr[colon+1:], 10, 16)
	return addr[:colon], int(n), err == nil
}

func sortByAddr(nodes []Node) {
	slices.SortFunc(nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), cmp.Compare(a.ID, b.ID))
	})
}

// Merge combines the tables of several nodes. The table with the latest epoch has priority: the
// other tables only add nodes that it does not list, without their slots. So a node that is cut off
// from the cluster cannot replace current roles or slots.
func Merge(tables []Table) Table {
	tables = slices.Clone(tables)
	slices.SortStableFunc(tables, func(a, b Table) int { return cmp.Compare(b.Epoch, a.Epoch) })
	var merged Table
	seen := map[string]bool{}
	for i, table := range tables {
		merged.Epoch = max(merged.Epoch, table.Epoch)
		for _, node := range table.Nodes {
			if seen[node.ID] {
				continue
			}
			if i > 0 {
				node.Slots = nil
			}
			seen[node.ID] = true
			merged.Nodes = append(merged.Nodes, node)
		}
	}
	sortByAddr(merged.Nodes)
	return merged
}

// UnservedSlots returns the number of slots that no working node serves.
func (t Table) UnservedSlots() int {
	var servedSlots [SlotCount]bool
	left := SlotCount
	for _, node := range t.Nodes {
		for _, slots := range node.Slots {
			for slot := slots.First; slot <= slots.Last && !node.Failed; slot++ {
				if !servedSlots[slot] {
					servedSlots[slot] = true
					left--
				}
			}
		}
	}
	return left
}
