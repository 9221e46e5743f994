// Package cluster follows the nodes of a Redis Cluster that is the upstream.
//
// Each node has an upstream of its own, and a listener of the proxy's own. A client's connection at
// that listener is relayed to the node, as to a single upstream; only addresses in replies are
// translated (package translate). So cluster clients do the routing, as they do without the proxy,
// and the relay does no more for a GET than with a single upstream. A router in the proxy would
// have to parse every reply, to split commands, and to imitate the errors of slots on the move.
//
// # The entrance
//
// The address of the setting listen belongs to no node. Connections to it are relayed to a node
// that answers, if possible a master. The entrance keeps that node until the node fails. If the
// address belonged to a node, no client could learn the cluster's nodes while that node is down.
// The proxy could not relay the node's commands to another node either, because a command such as
// FLUSHALL would run on the wrong node.
//
// # Changes
//
// Run asks up to five nodes for their tables every few seconds. It also asks immediately when a
// client's reply or connection shows that the cluster may have changed. One round of these requests
// is a poll. A node keeps its port while the cluster lists its ID, under whatever address, and a
// minute longer. In that minute its listener behaves like a node that cannot be reached.
package cluster
