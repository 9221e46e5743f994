package nodes

import (
	"slices"
	"time"
)

// GoneTime is the time for which a node that the cluster no longer lists keeps its port. Until
// then, clients that still know the port find it unreachable, and learn the cluster's nodes anew.
const GoneTime = time.Minute

// Member is a node with the port at which the proxy serves it.
type Member struct {
	Node
	// ListenPort is the proxy's port for the node.
	ListenPort int
	// GoneSince is the time since which the cluster does not list the node; zero if it lists it.
	GoneSince time.Time
}

// IsGone reports whether the cluster no longer lists the node.
func (m Member) IsGone() bool { return !m.GoneSince.IsZero() }

// Ports assigns a port to each node of a cluster. A node keeps its port as long as the cluster
// lists it, and GoneTime longer. It is not safe for concurrent use.
type Ports struct {
	first, last   int
	members       []Member // in the order of their ports
	unusablePorts map[int]bool
}

// NewPorts returns a Ports for the ports from first to last.
func NewPorts(first, last int) *Ports {
	return &Ports{first: first, last: last, unusablePorts: map[int]bool{}}
}

// Members returns the nodes that have a port, in the order of their ports.
func (p *Ports) Members() []Member { return slices.Clone(p.members) }

// Update records the nodes that the cluster lists now. It returns the nodes without a port, in the
// order of their addresses, and the nodes that lose their port.
func (p *Ports) Update(listedNodes []Node, now time.Time) (added []Node, removed []Member) {
	for i := range p.members {
		m := &p.members[i]
		at := slices.IndexFunc(listedNodes, func(n Node) bool { return n.ID == m.ID })
		switch {
		case at >= 0:
			// Nodes may disagree about the kind of address. A change would end all connections.
			byHostname := m.ByHostname
			m.Node, m.GoneSince = listedNodes[at], time.Time{}
			m.ByHostname = byHostname
		case !m.IsGone():
			m.GoneSince = now
		}
	}
	p.members = slices.DeleteFunc(p.members, func(m Member) bool {
		isOver := m.IsGone() && now.Sub(m.GoneSince) >= GoneTime
		if isOver {
			removed = append(removed, m)
		}
		return isOver
	})
	for _, node := range listedNodes {
		if p.indexOf(node.ID) < 0 {
			added = append(added, node)
		}
	}
	return added, removed
}

func (p *Ports) indexOf(id string) int {
	return slices.IndexFunc(p.members, func(m Member) bool { return m.ID == id })
}

// Next returns the first port that no node has and that is usable; ok is false if there is none.
func (p *Ports) Next() (port int, ok bool) {
	for port = p.first; port <= p.last; port++ {
		taken := slices.ContainsFunc(p.members, func(m Member) bool { return m.ListenPort == port })
		if !taken && !p.unusablePorts[port] {
			return port, true
		}
	}
	return 0, false
}

// MarkUnusable records that the proxy cannot listen on a port. ClearUnusable forgets that.
func (p *Ports) MarkUnusable(port int) { p.unusablePorts[port] = true }

// ClearUnusable makes all ports usable again.
func (p *Ports) ClearUnusable() { clear(p.unusablePorts) }

// Assign gives a node a port that Next has returned.
func (p *Ports) Assign(node Node, port int) {
	p.members = append(p.members, Member{Node: node, ListenPort: port})
	slices.SortFunc(p.members, func(a, b Member) int { return a.ListenPort - b.ListenPort })
}
