package upstream

import (
	"cmp"
	"errors"
	"net"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
)

// ErrCluster says that an upstream is not alone, where lock keys are set.
var ErrCluster = errors.New("it is a node of a Redis Cluster, or a Sentinel: clients would be led to other servers, which know nothing of lock keys; name a server " +
	"that is alone, or a Redis before which nothing of the cluster is seen, or have no lock-keys")

// RefuseClusters has a server that leads clients to others not be used. It is called before
// anything else.
func (u *Upstream) RefuseClusters() { u.alone = true }

// modes is what is known of whether an upstream is alone, where that must be so. It is of the
// Upstream's mu.
type modes struct {
	// untold: the upstream did not say, as one that demands a login first. found: a client that had
	// logged in was told that it is not alone.
	untold, found bool
}

// askMode asks whether the upstream is alone. One that does not say is taken as it is until a
// client finds out (HearMode): what would lead elsewhere is kept from clients all the same.
func (u *Upstream) askMode(conn net.Conn) error {
	if !u.alone {
		return nil
	}
	answer, err := u.exchange(conn, "HELLO")
	if err == nil && resp.Begins(answer, "-") { // older than that, or a login is demanded
		answer, err = u.exchange(conn, "INFO", "server")
	}
	if err != nil {
		return err
	}
	mode := modeIn(answer)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.modes.untold = mode == ""
	u.modes.found = u.modes.found && mode == ""
	if u.modes.found || leadsElsewhere(mode) {
		return ErrCluster
	}
	return nil
}

// HidesMode reports whether it is not known that the upstream is alone, and it has to be.
func (u *Upstream) HidesMode() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.modes.untold
}

// HearMode is told what the upstream answered to HELLO on the connection of a client that has
// logged in. If it is not alone it is not used any more, nor are the connections of before.
func (u *Upstream) HearMode(answer []byte) {
	mode := modeIn(answer)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.modes.untold || mode == "" {
		return
	}
	u.modes.untold = false
	if leadsElsewhere(mode) {
		u.modes.found = true
		u.unasked, u.vouched = 0, false
		u.part()
	}
}

// WhyLeft is why connections of an earlier Term are ended.
func (u *Upstream) WhyLeft() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.modes.found:
		return ErrCluster
	case errors.Is(u.err, ErrMaster):
		return u.err
	}
	return ErrFailedOver
}

// modeIn reads HELLO or INFO: how the server runs. It is empty where that is not said.
func modeIn(reply []byte) string {
	info := redisinfo.Parse(string(reply))
	mode, _ := after(resp.Texts(reply), "mode")
	return cmp.Or(info["redis_mode"], info["server_mode"], mode) // the second is Valkey's
}

// leadsElsewhere reports whether a server that runs so is a node of a cluster, or a Sentinel.
func leadsElsewhere(mode string) bool { return mode == "cluster" || mode == "sentinel" }
