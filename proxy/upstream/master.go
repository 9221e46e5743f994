package upstream

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
)

// ErrMaster reports that the upstream is one of the lock masters: clients would change its locks.
var ErrMaster = errors.New("clients would change locks there; name another Redis")

// RefuseMasters refuses an upstream that is a lock master, by its run_id or its address. masterName
// returns the name of the lock master; empty for other servers. It is called before all other
// methods.
func (u *Upstream) RefuseMasters(masterName func(runID, addr string) string) {
	u.masterName = masterName
}

// askServer asks for the server's identity, and refuses lock masters. If the server is a cluster
// node, it also checks the other nodes. It accepts a server that does not report its identity.
func (u *Upstream) askServer(conn net.Conn) error {
	if u.masterName == nil {
		return nil
	}
	info, err := u.exchange(conn, "INFO", "server")
	if err != nil {
		return err
	}
	masters := u.masterName(redisinfo.Parse(string(info))["run_id"], "")
	if parseMode(info) == "cluster" {
		nodes, err := u.exchange(conn, "CLUSTER", "NODES")
		if err != nil {
			return err
		}
		for _, addr := range parseNodes(nodes) {
			masters += u.masterName("", addr)
		}
	}
	if masters != "" {
		return fmt.Errorf("it is the lock master %s: %w", masters, ErrMaster)
	}
	return nil
}

// parseNodes returns the addresses in a reply to CLUSTER NODES.
func parseNodes(reply []byte) (addrs []string) {
	for line := range strings.SplitSeq(strings.Join(resp.Texts(reply), "\n"), "\n") {
		if words := strings.Fields(line); len(words) > 1 {
			addr, _, _ := strings.Cut(words[1], "@")
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// disconnectClients makes Run end the connections of clients.
func (u *Upstream) disconnectClients() {
	u.term.Add(1)
	select {
	case u.disconnectNow <- struct{}{}:
	default:
	}
}
