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
	// lookers is how many commands look through the masters at a time, and lookTime bounds each,
	// with its wait for others. A flush has all the time that it takes.
	lookers  = 4
	lookTime = 10 * time.Second
	// atOnce is how many keys the masters are asked for at once: their values may be large.
	atOnce = 50
)

// errSlow is the cause of a context that ends because a look took too long.
var errSlow = fmt.Errorf("the lock keys could not be listed within %v", lookTime)

// look has do look at the masters when its turn comes, in bounded time.
func (a *AllKeys) look(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTime, errSlow)
	defer cancel()
	select {
	case a.looking <- struct{}{}:
		defer func() { <-a.looking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errSlow) {
		return errSlow
	}
	return err
}

// matching are the lock keys on the masters that match a glob, each once: those that a majority
// holds, and perhaps others.
func (a *AllKeys) matching(ctx context.Context, db int, match string) ([]string, error) {
	found := map[string]struct{}{}
	pattern := keys.Compile(match)
	err := a.opts.Locks.Names(ctx, db, func(names []string) (bool, error) {
		for _, name := range names {
			key, ours := a.clients(name)
			if !ours {
				continue
			}
			if fits, err := pattern.Match(key); err != nil {
				return false, err
			} else if fits {
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

// clients is the key that a client has for a name on the masters. It is not ours where it is no
// lock key.
func (a *AllKeys) clients(name string) (key string, ours bool) {
	key, ours = strings.CutPrefix(name, a.opts.Prefix)
	return key, ours && a.opts.LockKeys.Match([]byte(key))
}

// present are those of the keys that a majority holds; with a kind, as TYPE returns it, only those
// of that kind.
func (a *AllKeys) present(ctx context.Context, db int, candidates []string, kind string) (held []string, err error) {
	for part := range slices.Chunk(candidates, atOnce) {
		places := make([]quorum.Key, len(part))
		for i, key := range part {
			places[i] = a.opts.Place(db, key)
		}
		looks, err := a.opts.Register.Read(ctx, places)
		if err != nil {
			return nil, err
		}
		for i, l := range looks {
			if l.Present && (kind == "" || kind == contents.KindName(l.Value)) {
				held = append(held, part[i])
			}
		}
	}
	return held, nil
}

// Held are the lock keys of a database that match a glob.
//
// Errors: those of quorum's Names and Read, or that it took too long.
func (a *AllKeys) Held(ctx context.Context, db int, match string) (held []string, err error) {
	err = a.look(ctx, func(ctx context.Context) error {
		candidates, err := a.matching(ctx, db, match)
		if err == nil {
			held, err = a.present(ctx, db, candidates, "")
		}
		return err
	})
	return held, err
}
