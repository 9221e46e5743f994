package server

import (
	"fmt"
	"net"
	"strconv"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// A lock server may say that it is a cluster, for clients that speak to nothing else: of one node, which is itself at the address by which the
// client reached it, and which has all slots. Other proxies are not listed.

// slots is how many a cluster has.
const slots = 16384

// cluster is CLUSTER.
func (s *Server) cluster(c command.Call) {
	if !s.opts.Cluster {
		noCluster(c)
		return
	}
	sub, host, port := syntax.Lower(c.Args[1]), "", int64(0)
	if addr, ok := c.Client.LocalAddr.(*net.TCPAddr); ok {
		host, port = addr.IP.String(), int64(addr.Port)
	}
	wanted, known := clusterWords[sub]
	switch {
	case !known:
		c.Out.Error(syntax.UnknownSubcommand("CLUSTER", c.Args[1]))
		return
	case len(c.Args) != wanted:
		c.Out.Error(syntax.WrongArity("cluster|" + sub))
		return
	}
	switch sub {
	case "myid":
		c.Out.Bulk(s.opts.ID)
	case "info":
		c.Out.Text(joinLines(clusterInfo))
	case "nodes":
		c.Out.Text(fmt.Sprintf("%s %s@%d myself,master - 0 0 1 connected 0-%d\n", s.opts.ID, net.JoinHostPort(host, strconv.FormatInt(port, 10)), port, slots-1))
	case "slots":
		s.clusterSlots(host, port, c.Out)
	case "shards":
		s.clusterShards(host, port, c.Out)
	case "keyslot":
		c.Out.Int(int64(slotOf(string(c.Args[2]))))
	case "countkeysinslot":
		c.Out.Int(0)
	default: // links, getkeysinslot
		c.Out.Array(0)
	}
}

// clusterWords are how many words its subcommands have.
var clusterWords = map[string]int{
	"myid": 2, "info": 2, "nodes": 2, "slots": 2, "shards": 2, "links": 2, "keyslot": 3, "countkeysinslot": 3, "getkeysinslot": 4,
}

var clusterInfo = []string{
	"cluster_state:ok", fmt.Sprint("cluster_slots_assigned:", slots), fmt.Sprint("cluster_slots_ok:", slots), "cluster_slots_pfail:0", "cluster_slots_fail:0",
	"cluster_known_nodes:1", "cluster_size:1", "cluster_current_epoch:1", "cluster_my_epoch:1",
}

func (s *Server) clusterSlots(host string, port int64, out *command.Reply) {
	out.Put([]any{[]any{0, slots - 1, []any{host, port, s.opts.ID, []any{}}}})
}

func (s *Server) clusterShards(host string, port int64, out *command.Reply) {
	node := command.Fields{
		"id", s.opts.ID, "port", port, "ip", host, "endpoint", host, "role", "master", "replication-offset", 0, "health", "online",
	}
	out.Put([]any{command.Fields{"slots", []any{0, slots - 1}, "nodes", []any{node}}})
}

// onCluster is a command that only a node of a cluster takes, and that changes nothing here.
func (s *Server) onCluster(c command.Call) {
	if !s.opts.Cluster {
		noCluster(c)
		return
	}
	c.Out.Status("OK")
}

// mode is how the server says that it runs.
func (s *Server) mode() string {
	if s.opts.Cluster {
		return "cluster"
	}
	return "standalone"
}

// slotOf is the slot of a key, by its tag or by all of it.
func slotOf(key string) int {
	if tag, tagged := keys.Tag(key); tagged {
		key = tag
	}
	crc := uint16(0) // CRC16-CCITT (XMODEM)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % slots
}

// clusterEnabled is the line of INFO.
func (s *Server) clusterEnabled() []string {
	return []string{"cluster_enabled:" + strconv.Itoa(count(s.opts.Cluster))}
}
