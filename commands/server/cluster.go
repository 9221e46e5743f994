package server

import (
	"fmt"
	"net"
	"strconv"

	"redlock-proxy/commands/command"
)

// A lock server may report that it is a cluster, for client libraries that require one. The cluster
// has one node with all slots: this proxy, at the address to which the client has connected. It
// does not contain other proxies.

// slots is the number of hash slots of a cluster.
const slots = 16384

// cluster implements CLUSTER.
func (s *Server) cluster(c command.Call) {
	if !s.opts.Cluster {
		replyNoCluster(c)
		return
	}
	command.Subcommands{
		"myid":   command.Sub(2, func(c command.Call) { c.Out.WriteBulk(s.opts.ID) }),
		"info":   command.Sub(2, func(c command.Call) { c.Out.WriteText(joinLines(clusterInfo)) }),
		"nodes":  command.Sub(2, s.clusterNodes),
		"slots":  command.Sub(2, s.clusterSlots),
		"shards": command.Sub(2, s.clusterShards),
		"help":   clusterHelp,
	}.Run(c)
}

var clusterHelp = command.Help(
	"CLUSTER <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
	"INFO", "    Return information about the cluster.",
	"MYID", "    Return the node id.",
	"NODES", "    Return cluster configuration seen by node.",
	"SHARDS", "    Return information about slot range mappings and the nodes associated with them.",
	"SLOTS", "    Return information about slots range mappings.",
	"HELP", "    Prints this help.",
)

var clusterInfo = []string{
	"cluster_state:ok", fmt.Sprint("cluster_slots_assigned:", slots), fmt.Sprint("cluster_slots_ok:", slots),
	"cluster_slots_pfail:0", "cluster_slots_fail:0",
	"cluster_known_nodes:1", "cluster_size:1", "cluster_current_epoch:1", "cluster_my_epoch:1",
}

// nodeAddress returns the address at which a client has reached the proxy.
func nodeAddress(c *command.Client) (host string, port int) {
	if addr, ok := c.LocalAddr.(*net.TCPAddr); ok {
		host, port = addr.IP.String(), addr.Port
	}
	return host, port
}

func (s *Server) clusterNodes(c command.Call) {
	host, port := nodeAddress(c.Client)
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	c.Out.WriteText(fmt.Sprintf("%s %s@%d myself,master - 0 0 1 connected 0-%d\n", s.opts.ID, addr, port, slots-1))
}

func (s *Server) clusterSlots(c command.Call) {
	host, port := nodeAddress(c.Client)
	c.Out.Put([]any{[]any{0, slots - 1, []any{host, port, s.opts.ID, command.Fields{}}}})
}

func (s *Server) clusterShards(c command.Call) {
	host, port := nodeAddress(c.Client)
	node := command.Fields{
		"id", s.opts.ID, "port", port, "ip", host, "endpoint", host,
		"role", "master", "replication-offset", 0, "health", "online",
	}
	c.Out.Put([]any{command.Fields{"slots", []any{0, slots - 1}, "nodes", []any{node}}})
}

// readOnly implements READONLY, which only a node of a cluster accepts. It has no effect.
func (s *Server) readOnly(c command.Call) {
	if !s.opts.Cluster {
		replyNoCluster(c)
		return
	}
	c.Out.WriteStatus("OK")
}

// mode returns the mode of the server, as HELLO and INFO show it.
func (s *Server) mode() string {
	if s.opts.Cluster {
		return "cluster"
	}
	return "standalone"
}

// clusterEnabled returns the line of INFO about the cluster.
func (s *Server) clusterEnabled() []string {
	return []string{"cluster_enabled:" + strconv.Itoa(boolToInt(s.opts.Cluster))}
}
