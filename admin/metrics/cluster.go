package metrics

import "github.com/prometheus/client_golang/prometheus"

// Cluster is the state of a Redis Cluster that is the upstream.
type Cluster struct {
	Nodes []Node
	// UncoveredSlots is the number of slots that no node serves.
	UncoveredSlots int
}

// Node is the state of a node of a cluster.
type Node struct {
	Address string
	Up      bool
	Clients int // connected at the proxy's port for the node
}

// clusterDescs describes the metrics of a cluster.
type clusterDescs struct{ nodeUp, nodeClients, uncoveredSlots *prometheus.Desc }

func newClusterDescs() clusterDescs {
	return clusterDescs{
		nodeUp: newDesc("redlock_cluster_node_up", "1 while the node of the cluster answers, else 0.", "node"),
		nodeClients: newDesc("redlock_cluster_node_client_connections",
			"Clients connected at the proxy's port for the node of the cluster.", "node"),
		uncoveredSlots: newDesc("redlock_cluster_slots_uncovered", "Slots of the cluster that no node serves."),
	}
}

func (d clusterDescs) describe(out chan<- *prometheus.Desc) {
	out <- d.nodeUp
	out <- d.nodeClients
	out <- d.uncoveredSlots
}

// collect sends the metrics. If several nodes have the same address, collect uses only the first,
// because a node that has left the cluster may have the address of another node.
func (d clusterDescs) collect(out chan<- prometheus.Metric, c Cluster) {
	seen := map[string]bool{}
	for _, n := range c.Nodes {
		if seen[n.Address] {
			continue
		}
		seen[n.Address] = true
		out <- metric(d.nodeUp, prometheus.GaugeValue, boolValue(n.Up), n.Address)
		out <- metric(d.nodeClients, prometheus.GaugeValue, float64(n.Clients), n.Address)
	}
	out <- metric(d.uncoveredSlots, prometheus.GaugeValue, float64(c.UncoveredSlots))
}
