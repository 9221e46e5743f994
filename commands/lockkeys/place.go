package lockkeys

import (
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/quorum"
)

// Locator returns a function that locates a key on the masters: in the cell of its hash tag if
// lock-tags match the key, else in a cell of its own. The location depends on nothing else, so all
// proxies with the same settings agree.
func Locator(prefix string, tagged, moving keys.Patterns) func(db int, key string) quorum.Key {
	return func(db int, key string) quorum.Key {
		place := quorum.Key{DB: db, Name: prefix + key, Movable: moving.Any() && moving.Match([]byte(key))}
		if tagged.Any() {
			if tag, has := keys.Tag(key); has && tagged.Match([]byte(key)) {
				place.Tag = prefix + tag
			}
		}
		return place
	}
}

// SharedSettings returns quorum.Options.Settings: the settings that decide which key is which lock.
// The order of the globs does not matter.
func SharedSettings(prefix string, lockKeys, lockTags []string, guard, fromUpstream bool) string {
	globs := func(all []string) []string { return syntax.Distinct(slices.Sorted(slices.Values(all))) }
	rules := fmt.Sprintf("guard %v\nkey-prefix %q\nlock-keys %q\nlock-tags %q",
		guard, prefix, globs(lockKeys), globs(lockTags))
	if fromUpstream {
		rules += "\n" + quorum.LocksUpstream
	}
	return rules
}
