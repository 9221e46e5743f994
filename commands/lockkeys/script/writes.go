package script

import "redlock-proxy/commands/catalog/spec"

// isWriteCommand reports whether a read-only script may not call a command, because it writes, or
// because Redis may propagate it to replicas.
func isWriteCommand(command string) bool {
	c := spec.Find([]byte(command))
	return c != nil && c.HasAny(spec.Writes|spec.Propagates)
}
