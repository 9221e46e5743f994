package program

import (
	"encoding/binary"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/quorum"
)

// snapshot returns the Snapshot on which a program runs.
func (v view) snapshot(now time.Time) *keyspace.Snapshot {
	s := keyspace.NewSnapshot(now)
	for key, l := range v {
		s.Put(key, EntryOf(l))
	}
	return s
}

// EntryOf converts the result of a read to a program's entry.
func EntryOf(l quorum.Snapshot) keyspace.Entry {
	e := keyspace.Entry{Present: l.Present, Value: l.Value, RemainingTTL: l.TimeLeft.Truncate(time.Millisecond)}
	switch {
	case !l.Present:
		return keyspace.Entry{}
	case l.TimeLeftUnknown:
		e.RemainingTTL = keyspace.UnknownExpiry
	case l.TimeLeft < 0:
		e.RemainingTTL = keyspace.NoExpiry
	}
	return e
}

// KeysOnMasters maps a client's keys to the keys on the masters.
func (e *Engine) KeysOnMasters(db int, keys []string) []quorum.Key {
	keysOnMasters := make([]quorum.Key, len(keys))
	for i, key := range keys {
		keysOnMasters[i] = e.KeyOnMasters(db, key)
	}
	return keysOnMasters
}

// ttlOf returns the TTL that an edit gives its key.
func ttlOf(e keyspace.Edit) time.Duration {
	if e.After.RemainingTTL < 0 {
		return quorum.NoExpiry
	}
	return e.After.RemainingTTL
}

// retryDelay returns a random time that grows with the number of failures, so that clients that
// contend for a key retry at different times.
func (e *Engine) retryDelay(failures int) time.Duration {
	var bits [8]byte
	e.Random(bits[:])
	longest := time.Millisecond << min(failures, 6)
	return time.Duration(binary.NativeEndian.Uint64(bits[:]) % uint64(longest))
}
