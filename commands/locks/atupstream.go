package locks

import (
	"fmt"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/command"
)

// RefuseWhileAtUpstream returns the commands for the time while the locks are at the upstream. A
// command fails if it names a lock key, or affects all locks.
func RefuseWhileAtUpstream(commands []*command.Command, lockKeys keys.Patterns) []*command.Command {
	wrapped := make([]*command.Command, len(commands))
	for i, original := range commands {
		refusing := *original
		refusing.Run = func(c command.Call) {
			if lock, _ := lockKeys.Split(c.Args, refusing.Places(c.Args)); lock >= 0 || refusing.AffectsAllLocks {
				c.Out.WriteError(fmt.Sprintf("ERR %s needs the locks on the masters: they are at the upstream; "+
					"run 'redlock-proxy move' first, or use Redis' own commands, such as SET NX PX",
					strings.ToUpper(refusing.Name)))
				return
			}
			original.Run(c)
		}
		wrapped[i] = &refusing
	}
	return wrapped
}
