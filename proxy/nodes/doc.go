// Package nodes describes the nodes of a Redis Cluster, and the ports at which the proxy serves
// them. It does no I/O.
//
// [Parse] reads the table of one node, [Merge] combines the tables of several nodes. A [Ports]
// assigns a port to each node ID, and a [Map] finds the port for an ID or an address.
//
// The tables are replies to CLUSTER NODES, not to CLUSTER SHARDS or CLUSTER SLOTS. All versions of
// Redis and Valkey have CLUSTER NODES in one form. It is the only one that lists a master without
// slots in every version, names each node by its ID, its address and its hostname at once, and says
// which node has replied.
package nodes
