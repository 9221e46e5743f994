// Package nodes describes the nodes of a Redis Cluster, and the ports at which the proxy serves
// them. It does no I/O.
//
// [Parse] reads the table of one node, [Merge] combines the tables of several nodes. A [Ports]
// assigns a port to each node ID, and a [Map] finds the port for an ID or an address.
//
// The tables are replies to CLUSTER NODES, not to CLUSTER SHARDS or CLUSTER SLOTS. All versions of
// Redis and Valkey have CLUSTER NODES in one form. In every version, CLUSTER NODES lists masters
// without slots, gives the ID, the address and any hostname of each node, and marks the node that
// has replied. Neither of the other two commands does all of this.
package nodes
