package lockkeys

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
)

// UnfitKeyError returns the error of a command that lock keys do not support.
func UnfitKeyError(name string, key []byte) string {
	return fmt.Sprintf("ERR '%s' cannot run on lock key '%s': "+
		"lock keys support only string, hash, list, set and sorted-set commands; use another key",
		name, syntax.Excerpt(key))
}

// MixedKeysError returns the error of a command that names both lock keys and keys of the upstream.
func MixedKeysError(name string, lockKey, upstreamKey []byte) string {
	return fmt.Sprintf("ERR '%s' mixes lock keys and other keys: '%s' is on the lock masters, '%s' on the upstream; "+
		"send two commands",
		name, syntax.Excerpt(lockKey), syntax.Excerpt(upstreamKey))
}
