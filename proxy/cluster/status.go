package cluster

import (
	"fmt"

	"redlock-proxy/proxy/nodes"
)

// NodeStatus is the state of a node, for operators.
type NodeStatus struct {
	nodes.Member
	// Clients is the number of clients that are connected at the node's port.
	Clients int
	// Err is the reason why the node is down; nil if it is up.
	Err error
}

// SlotCount returns the number of slots that the node serves.
func (s NodeStatus) SlotCount() (n int) {
	for _, slots := range s.Slots {
		n += slots.Last - slots.First + 1
	}
	return n
}

// Nodes returns the state of each node that has a port, in the order of the ports.
func (c *Cluster) Nodes() []NodeStatus {
	listed := *c.listedMembers.Load()
	all := make([]NodeStatus, 0, len(listed))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range listed {
		if served := c.members[m.ID]; served != nil { // else the node was just removed
			_, err := served.up.Status()
			all = append(all, NodeStatus{Member: m, Clients: served.server.Connections(), Err: err})
		}
	}
	return all
}

// UnservedSlots returns the number of slots that no working node serves.
func (c *Cluster) UnservedSlots() int { return c.Table().UnservedSlots() }

// Status returns a name for the cluster. err is the reason why the cluster does not serve all
// slots; nil if it does.
func (c *Cluster) Status() (name string, err error) {
	name = fmt.Sprintf("cluster of %d nodes", len(c.Table().Nodes))
	if err := *c.pollErr.Load(); err != nil {
		return name, err
	}
	if left := c.UnservedSlots(); left > 0 {
		return name, fmt.Errorf("%d of %d slots are not served", left, nodes.SlotCount)
	}
	return name, nil
}
