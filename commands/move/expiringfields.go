package move

import (
	"context"
	"slices"

	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// hashFields holds the names of the fields of a hash.
type hashFields struct {
	key   string
	names []string
}

// expiringHashes returns the hashes among keys, with the names of their fields. It returns none if
// no field in the database expires individually.
func (s *upstreamStore) expiringHashes(ctx context.Context, keys []sizedKey) (hashes []hashFields, err error) {
	if !s.fieldsExpire[keys[0].db] {
		return nil, nil
	}
	for _, n := range keys {
		if n.valueType == contents.HashKind.String() {
			hashes = append(hashes, hashFields{key: n.key})
		}
	}
	if len(hashes) == 0 {
		return nil, nil
	}
	replies, err := s.askInDatabase(ctx, keys[0].db,
		commandsFor(hashes, func(h hashFields) []string { return []string{"HKEYS", h.key} })...)
	for i := range replies {
		hashes[i].names = stringsOf(replies[i])
	}
	return slices.DeleteFunc(hashes, func(h hashFields) bool { return len(h.names) == 0 }), err
}

// fieldExpiry evaluates the reply to HPEXPIRETIME for a hash that had fieldCount fields just
// afterwards. expires reports whether a field expires by itself. complete reports whether the reply
// covers exactly these fields.
func fieldExpiry(expiries []any, fieldCount int) (expires, complete bool) {
	expires = slices.ContainsFunc(expiries, func(expiry any) bool { at, _ := expiry.(int64); return at > 0 })
	isGone := slices.Contains(expiries, any(int64(-2)))
	return expires, !isGone && len(expiries) == fieldCount
}
