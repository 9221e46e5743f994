package lockkeys

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
)

// Unfit returns the error of a command that makes no sense on a lock key.
func Unfit(name string, key []byte) string {
	return fmt.Sprintf("ERR '%s' cannot run on lock key '%s': "+
		"lock keys support only string, hash, list, set and sorted-set commands; use another key",
		name, syntax.Shown(key))
}

// Mixed returns the error of a command that names both lock keys and keys of the upstream.
func Mixed(name string, lockKey, upstreamKey []byte) string {
	return fmt.Sprintf("ERR '%s' mixes lock keys and other keys: '%s' is on the lock masters, '%s' on the upstream; "+
		"send two commands",
		name, syntax.Shown(lockKey), syntax.Shown(upstreamKey))
}
