package script

import "redlock-proxy/commands/catalog/spec"

// writes reports whether a script that only reads may not call a command: all that write, or that
// Redis may pass on to replicas.
func writes(command string) bool {
	c := spec.Find([]byte(command))
	return c != nil && c.Does(spec.Writes|spec.Propagates)
}
