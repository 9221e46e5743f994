package locks

import (
	"slices"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/locks/holders"
	"redlock-proxy/commands/locks/single"
	"redlock-proxy/quorum"
)

// Unmoved are the commands of locks that have not moved to the masters: of lock keys they ask the upstream, of others the masters as ever.
type Unmoved struct {
	Locking *Locking
	Holders *holders.Holders
	Locks   *single.Locks
}

// Commands have the names and docs of those that ask the masters alone.
func (u Unmoved) Commands() []*command.Command {
	all := slices.Concat(u.Locking.Commands(), u.Holders.Commands())
	for i, atMasters := range all {
		both := *atMasters
		both.Brief = nil // the upstream is asked
		both.Run = func(c command.Call) {
			if both.Keyed() && !u.Locks.Has(c.Args[1]) {
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
func (u Unmoved) run(name string, c command.Call) {
	at := *u.Locking
	at.Locks, at.watching = u.Locks.For(c), true
	at.Place = func(db int, key string) quorum.Key { return quorum.Key{DB: db, Name: key} }
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
		u.Holders.Run(name, c, func(masters holders.Locks, prefix string) holders.Locks { return u.Locks.Holders(c, masters, prefix) })
	}
}
