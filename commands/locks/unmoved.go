package commands

import (
	"slices"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/locks/holders"
	"redlock-proxy/commands/locks/single"
	"redlock-proxy/quorum"
)

// unmoved are the commands of locks that have not moved to the masters: of lock keys they ask the upstream, of others the masters as ever.
type unmoved struct {
	locking *locking
	holders *holders.Holders
	locks   *single.Locks
}

// commands have the names and docs of those that ask the masters alone.
func (u unmoved) commands() []*command.Command {
	all := slices.Concat(u.locking.commands(), u.holders.Commands())
	for i, atMasters := range all {
		both := *atMasters
		both.Brief = nil // the upstream is asked
		both.Run = func(c command.Call) {
			if both.Keyed() && !u.locks.Has(c.Args[1]) {
				atMasters.Run(c)
				return
			}
			u.run(both.Name, c)
		}
		all[i] = &both
	}
	return all
}

// run carries out a command of a lock key, or of all locks.
func (u unmoved) run(name string, c command.Call) {
	at := *u.locking
	at.locks, at.watching = u.locks.For(c), true
	at.place = func(db int, key string) quorum.Key { return quorum.Key{DB: db, Name: key} }
	switch name {
	case "lock":
		at.lock(c)
	case "unlock":
		at.unlock(c)
	case "extend":
		at.extend(c)
	case "fence":
		at.fence(c)
	default:
		u.holders.Run(name, c, func(masters holders.Locks, prefix string) holders.Locks { return u.locks.Holders(c, masters, prefix) })
	}
}
