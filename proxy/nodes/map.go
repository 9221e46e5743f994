package nodes

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
)

// Map finds the proxy's port for a node of the cluster. It is immutable; the zero value knows no
// node.
type Map struct {
	byID            map[string]int
	byAddr          map[string]int
	slotPorts       [SlotCount]uint16 // the port of the node that serves each slot; 0 if it is unknown
	firstMasterPort int               // the lowest port of a master that the cluster lists; 0 if there is none
}

// NewMap returns the map of nodes that have a port. If two nodes have the same address, a node that
// the cluster lists precedes a node that is gone.
func NewMap(members []Member) *Map {
	m := &Map{byID: map[string]int{}, byAddr: map[string]int{}}
	for _, member := range members {
		if member.IsMaster() && !member.IsGone() && (m.firstMasterPort == 0 || member.ListenPort < m.firstMasterPort) {
			m.firstMasterPort = member.ListenPort
		}
		for _, slots := range member.Slots {
			for slot := slots.First; slot <= slots.Last && !member.IsGone(); slot++ {
				m.slotPorts[slot] = uint16(member.ListenPort)
			}
		}
	}
	for _, gone := range []bool{true, false} {
		for _, member := range members {
			if member.IsGone() != gone {
				continue
			}
			m.byID[member.ID] = member.ListenPort
			for _, host := range []string{member.Host, member.Hostname} {
				if host != "" {
					m.byAddr[addrKey(host, member.Port)] = member.ListenPort
				}
			}
		}
	}
	return m
}

// PortOf returns the proxy's port for a node ID.
func (m *Map) PortOf(id string) (port int, known bool) {
	port, known = m.byID[id]
	return port, known
}

// PortAt returns the proxy's port for the node at an address.
func (m *Map) PortAt(host string, nodePort int) (port int, known bool) {
	port, known = m.byAddr[addrKey(host, nodePort)]
	return port, known
}

// PortOfSlot returns the proxy's port for the node that serves a slot; 0 if it is unknown.
func (m *Map) PortOfSlot(slot int) (port int) { return int(m.slotPorts[slot]) }

// ListsKey reports whether a lock key appears among the keys of a node. A lock key appears at the
// node that serves the key's slot or, if no node serves it, at the first master.
func (m *Map) ListsKey(id, key string) bool {
	port, known := m.PortOf(id)
	return known && port == cmp.Or(m.PortOfSlot(SlotOf(key)), m.firstMasterPort)
}

// addrKey returns an address in the form in which addresses are compared.
func addrKey(host string, port int) string {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		host = ip.Unmap().String()
	} else {
		host = strings.TrimSuffix(strings.ToLower(host), ".")
	}
	return host + " " + strconv.Itoa(port)
}
