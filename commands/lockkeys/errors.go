package lockkeys

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
)

// Unfit says why a command makes no sense for a lock key.
func Unfit(name string, key []byte) string {
	return fmt.Sprintf("ERR lock key '%s': '%s' cannot run on the lock masters; a lock key takes commands of strings, hashes, lists, sets and sorted sets",
		syntax.Shown(key), name)
}

// Mixed refuses a command of which some keys are lock keys and others are not.
func Mixed(name string, lock, other []byte) string {
	return fmt.Sprintf("ERR '%s' names lock keys and others: '%s' is on the lock masters, '%s' on the upstream; send two commands",
		name, syntax.Shown(lock), syntax.Shown(other))
}
