package lockkeys

import (
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/quorum"
)

// Places says where a key stands on the masters: in a cell of its own name or, with a hash tag, if
// it matches, in that of its tag. It depends on nothing else, so that all proxies with the same
// settings agree.
func Places(prefix string, tagged, moving keys.Patterns) func(db int, key string) quorum.Key {
	return func(db int, key string) quorum.Key {
		place := quorum.Key{DB: db, Name: prefix + key, Moves: moving.Any() && moving.Match([]byte(key))}
		if tagged.Any() {
			if tag, has := keys.Tag(key); has && tagged.Match([]byte(key)) {
				place.Tag = prefix + tag
			}
		}
		return place
	}
}

// Rules are quorum.Options.Settings: what decides which key is which lock, the same for the same
// globs in whatever order.
func Rules(prefix string, lockKeys, lockTags []string, guard, fromUpstream bool) string {
	globs := func(all []string) []string { return syntax.Distinct(slices.Sorted(slices.Values(all))) }
	rules := fmt.Sprintf("guard %v\nkey-prefix %q\nlock-keys %q\nlock-tags %q", guard, prefix, globs(lockKeys), globs(lockTags))
	if fromUpstream {
		rules += "\n" + quorum.LocksUpstream
	}
	return rules
}
