package daemon

import (
	"fmt"
	"log/slog"

	"redlock-proxy/admin"
	"redlock-proxy/conf"
)

// Numbers of descriptors that the proxy needs in addition to the descriptors of clients.
const (
	// reservedDescriptors is the number for files, the listener and polling. Redis reserves as
	// many.
	reservedDescriptors = 32
	// masterDescriptors is the number for the connections to one master.
	masterDescriptors = 10
	// upstreamDescriptors is the number for the proxy's own connections to the upstream.
	upstreamDescriptors = 16
	// nodeDescriptors is the number for one node of a cluster: its listener, polling, and the
	// proxy's own connections. expectedNodes is the number of nodes for which the proxy reserves
	// descriptors.
	nodeDescriptors = 8
	expectedNodes   = 12
	// adminDescriptors is the number for the admin port.
	adminDescriptors = admin.MaxConns + 2
)

// descriptorsFor returns how many descriptors the proxy needs: a fixed number, and a number for
// each client.
func descriptorsFor(cfg conf.Config) (reserved, perClient int) {
	reserved, perClient = reservedDescriptors+masterDescriptors*len(cfg.Masters), 1
	if cfg.Admin != "" {
		reserved += adminDescriptors
	}
	if cfg.Upstream != "" {
		reserved, perClient = reserved+upstreamDescriptors, 2
	}
	if cfg.HasCluster() {
		reserved += expectedNodes * nodeDescriptors
	}
	return reserved, perClient
}

// fitClients returns the number of clients for which a limit on open files suffices, at most
// max-clients. It returns an error if the limit does not even suffice for one client.
func fitClients(cfg conf.Config, limit uint64) (clients int, err error) {
	reserved, perClient := descriptorsFor(cfg)
	least := uint64(reserved + perClient)
	if limit < least {
		return 0, fmt.Errorf("your current 'ulimit -n' of %d is not enough for the proxy to start; please increase "+
			"your open file limit to at least %d", limit, least)
	}
	room := (limit - uint64(reserved)) / uint64(perClient)
	return int(min(uint64(cfg.MaxClients), room)), nil
}

// limitClients raises the limit on open files to the number that the configuration needs, as far as
// the system allows it. If the system allows too few descriptors, limitClients lowers max-clients.
func limitClients(cfg *conf.Config, log *slog.Logger) error {
	reserved, perClient := descriptorsFor(*cfg)
	wanted := uint64(reserved + perClient*cfg.MaxClients)
	limit, known := raiseOpenFileLimit(wanted)
	if !known || limit >= wanted {
		return nil
	}
	clients, err := fitClients(*cfg, limit)
	if err != nil {
		return err
	}
	log.Warn("max-clients is reduced: the limit on open files is too low; raise ulimit -n",
		"max_clients", cfg.MaxClients, "reduced_to", clients, "needed", wanted, "limit", limit)
	cfg.MaxClients = clients
	return nil
}
