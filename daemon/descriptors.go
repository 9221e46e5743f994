package daemon

import (
	"fmt"
	"log/slog"

	"redlock-proxy/admin"
	"redlock-proxy/conf"
)

// What needs descriptors beside the clients.
const (
	// reservedDescriptors are for the process itself, as many as Redis keeps: its files,
	// its listener, its polling.
	reservedDescriptors = 32
	// masterDescriptors are for the connections to one master.
	masterDescriptors = 10
	// upstreamDescriptors are for what is done at the upstream beside the clients.
	upstreamDescriptors = 16
	// adminDescriptors are for the admin port.
	adminDescriptors = admin.MaxConns + 2
)

// needs are the descriptors that a configuration needs: beside the clients, and for each.
func needs(cfg conf.Config) (reserved, each int) {
	reserved, each = reservedDescriptors+masterDescriptors*len(cfg.Masters), 1
	if cfg.Admin != "" {
		reserved += adminDescriptors
	}
	if cfg.Upstream != "" {
		reserved, each = reserved+upstreamDescriptors, 2
	}
	return reserved, each
}

// fitClients is the number of clients for which a limit on open files has room, at most
// those configured. The error says that there is room for none.
func fitClients(cfg conf.Config, limit uint64) (clients int, err error) {
	reserved, each := needs(cfg)
	least := uint64(reserved + each)
	if limit < least {
		return 0, fmt.Errorf("your current 'ulimit -n' of %d is not enough for the proxy to start: please increase your open file limit to at least %d", limit, least)
	}
	room := (limit - uint64(reserved)) / uint64(each)
	return int(min(uint64(cfg.MaxClients), room)), nil
}

// limitClients raises the limit on open files to what the configuration needs, as far as
// the system lets it, and lowers max-clients to what there is room for.
func limitClients(cfg *conf.Config, log *slog.Logger) error {
	reserved, each := needs(*cfg)
	wanted := uint64(reserved + each*cfg.MaxClients)
	limit, known := raiseDescriptors(wanted)
	if !known || limit >= wanted {
		return nil
	}
	clients, err := fitClients(*cfg, limit)
	if err != nil {
		return err
	}
	log.Warn(fmt.Sprintf("max-clients of %d requires at least %d max file descriptors. Current maximum open files is %d. "+
		"max-clients has been reduced to %d to compensate for low ulimit. If you need higher max-clients increase 'ulimit -n'.",
		cfg.MaxClients, wanted, limit, clients))
	cfg.MaxClients = clients
	return nil
}
