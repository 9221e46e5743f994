package upstream

import (
	"errors"
	"net"
	"regexp"

	"redlock-proxy/internal/resp"
)

// ErrCluster says that an upstream is not alone, where lock keys are set.
var ErrCluster = errors.New("it is a node of a Redis Cluster, or a Sentinel: clients would be led to other servers, which know nothing of lock keys; name a server " +
	"that is alone, or a Redis before which nothing of the cluster is seen, or have no lock-keys")

// RefuseClusters has a server that leads clients to others not be used. It is called before anything else.
func (u *Upstream) RefuseClusters() { u.alone = true }

// askMode asks whether the upstream is alone. One that does not say is taken as it is: what would lead elsewhere is kept from clients all the same.
func (u *Upstream) askMode(conn net.Conn) error {
	if !u.alone {
		return nil
	}
	answer, err := u.exchange(conn, "HELLO")
	if err == nil && resp.Begins(answer, "-") { // older than that, or a login is demanded
		answer, err = u.exchange(conn, "INFO", "server")
	}
	if err == nil && leadsElsewhere(answer) {
		err = ErrCluster
	}
	return err
}

// infoMode is that line of INFO, which has another name in Valkey.
var infoMode = regexp.MustCompile(`\n(?:redis|server)_mode:(\w+)`)

// leadsElsewhere reads HELLO or INFO: whether the server is a node of a cluster, or a Sentinel.
func leadsElsewhere(reply []byte) bool {
	mode, _ := after(resp.Texts(reply), "mode")
	if told := infoMode.FindSubmatch(reply); told != nil {
		mode = string(told[1])
	}
	return mode == "cluster" || mode == "sentinel"
}
