package allkeys

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/quorum"
)

const (
	// maxListing limits the number of commands that list the key names on the masters at a time.
	// listTimeout limits the time of such a command, including the wait for its slot. A flush has
	// no time limit.
	maxListing  = 4
	listTimeout = 10 * time.Second
	// readBatch limits the keys of one read. It is small because values may be large.
	readBatch = 50
)

// errListTimeout is the error of a command that could not list the lock keys within listTimeout. It
// is also the cause of the end of the context.
var errListTimeout = fmt.Errorf("cannot list the lock keys: it took longer than %v; try again", listTimeout)

// withListSlot waits for a list slot, and calls do. The timeout includes the wait.
func (a *AllKeys) withListSlot(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, errListTimeout)
	defer cancel()
	select {
	case a.listSlots <- struct{}{}:
		defer func() { <-a.listSlots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errListTimeout) {
		return errListTimeout
	}
	return err
}

// listCandidates returns the lock keys on the masters that match a glob, without duplicates. It
// returns all keys that a majority holds, and may return keys that only a minority holds.
func (a *AllKeys) listCandidates(ctx context.Context, db int, match string) ([]string, error) {
	found := map[string]struct{}{}
	pattern := keys.Compile(match)
	err := a.opts.Locks.Names(ctx, db, func(names []string) (bool, error) {
		for _, name := range names {
			key, isLockKey := a.clientKey(name)
			if !isLockKey {
				continue
			}
			if matches, err := pattern.Match(key); err != nil {
				return false, err
			} else if matches {
				found[key] = struct{}{}
			}
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// clientKey returns the key that clients use for a name on the masters. isLockKey reports whether
// the key is a lock key.
func (a *AllKeys) clientKey(name string) (key string, isLockKey bool) {
	key, isLockKey = strings.CutPrefix(name, a.opts.Prefix)
	return key, isLockKey && a.opts.LockKeys.Match([]byte(key))
}

// presentKeys returns the candidates that a majority holds. If kind is not "", it returns only keys
// of this type (see TYPE).
func (a *AllKeys) presentKeys(
	ctx context.Context, db int, candidates []string, kind string,
) (existingKeys []string, err error) {
	for part := range slices.Chunk(candidates, readBatch) {
		keysOnMasters := make([]quorum.Key, len(part))
		for i, key := range part {
			keysOnMasters[i] = a.opts.KeyOnMasters(db, key)
		}
		values, err := a.opts.Register.Read(ctx, keysOnMasters)
		if err != nil {
			return nil, err
		}
		for i, l := range values {
			if l.Present && (kind == "" || kind == contents.KindName(l.Value)) {
				existingKeys = append(existingKeys, part[i])
			}
		}
	}
	return existingKeys, nil
}

// List returns the lock keys of a database that match a glob.
//
// Errors: the errors of quorum's Names and Read, errListTimeout, or the error for a glob that needs
// too many comparisons.
func (a *AllKeys) List(ctx context.Context, db int, match string) (lockKeys []string, err error) {
	err = a.withListSlot(ctx, func(ctx context.Context) error {
		candidates, err := a.listCandidates(ctx, db, match)
		if err == nil {
			lockKeys, err = a.presentKeys(ctx, db, candidates, "")
		}
		return err
	})
	return lockKeys, err
}
