package quorum

import (
	"fmt"
	"strings"

	"redlock-proxy/quorum/guard/script"
)

// Key names a lock: the same name in another database is another lock.
type Key struct {
	// DB is the number of the database, as in SELECT.
	DB int
	// Name is the key as it stands on the masters.
	Name string
}

func namesOf(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// OwnKeyError says that a lock cannot have a name with which the keys of the proxies' own
// begin on the masters.
type OwnKeyError struct {
	// Key is the name.
	Key string
}

// Error is a sentence that names the key.
func (e *OwnKeyError) Error() string {
	return fmt.Sprintf("the key %q cannot be a lock: names that begin with %q are the proxies' own", e.Key, script.OwnPrefix)
}

// ownKey returns an *OwnKeyError for the first key that is not a lock's.
func ownKey(keys ...Key) error {
	for _, key := range keys {
		if isOwn(key.Name) {
			return &OwnKeyError{Key: key.Name}
		}
	}
	return nil
}

func isOwn(name string) bool { return strings.HasPrefix(name, script.OwnPrefix) }
