package lockkeys

import (
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/quorum"
)

// KeyOnMastersFunc returns the function that maps a client's key to the key on the masters. If a
// key has a hash tag, and lockTags match the key, the key is in the cell of the tag. Any other key
// is in its own cell. movableKeys match the keys for which the function sets quorum.Key.Movable.
// The mapping depends only on the settings, so all proxies with the same settings agree.
func KeyOnMastersFunc(prefix string, lockTags, movableKeys keys.Patterns) func(db int, key string) quorum.Key {
	return func(db int, key string) quorum.Key {
		keyOnMasters := quorum.Key{DB: db, Name: prefix + key, Movable: movableKeys.HasPatterns() && movableKeys.Match([]byte(key))}
		if lockTags.HasPatterns() {
			if tag, ok := keys.Tag(key); ok && lockTags.Match([]byte(key)) {
				keyOnMasters.Tag = prefix + tag
			}
		}
		return keyOnMasters
	}
}

// SharedSettings returns the value of quorum.Options.Settings: the settings that all proxies must
// share. The order of the globs does not matter.
func SharedSettings(prefix string, lockKeys, lockTags []string, guard, fromUpstream bool) string {
	globs := func(patterns []string) []string { return syntax.Distinct(slices.Sorted(slices.Values(patterns))) }
	rules := fmt.Sprintf("guard %v\nkey-prefix %q\nlock-keys %q\nlock-tags %q",
		guard, prefix, globs(lockKeys), globs(lockTags))
	if fromUpstream {
		rules += "\n" + quorum.LocksUpstream
	}
	return rules
}
