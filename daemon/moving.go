package daemon

import (
	"redlock-proxy/commands"
	"redlock-proxy/commands/single"
	"redlock-proxy/conf"
)

// canMove reports whether the locks of a proxy can be moved from its upstream to the masters and back.
func canMove(cfg conf.Config) bool { return cfg.Upstream != "" && len(cfg.LockKeys) > 0 && cfg.Guard }

// moving is what is there for locks that are at the upstream; empty where they never are.
type moving struct {
	// table is for as long as they are there, locks are what LOCK and the like take.
	table *commands.Table
	locks *single.Locks
}

func newMoving(d *daemon, opts commands.Options) moving {
	locks := single.New(single.Options{LockKeys: opts.LockKeys, Name: d.upstream.Name, Watched: d.upstream, Places: d.cluster, Logger: d.log})
	return moving{table: commands.NewUnmovedTable(d.table, opts, locks), locks: locks}
}

func (m moving) close() {
	if m.locks != nil {
		m.locks.Close()
	}
}

// applyToTables has settings hold for all commands.
func (d *daemon) applyToTables(cfg conf.Config) {
	d.table.Apply(tableSettings(cfg))
	if d.moving.table != nil {
		d.moving.table.Apply(tableSettings(cfg))
	}
}
