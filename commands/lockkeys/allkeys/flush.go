package allkeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// parallelRemovals limits the number of lock keys that a flush removes at a time.
const parallelRemovals = 16

// flushDB runs FLUSHDB [ASYNC|SYNC].
func (a *AllKeys) flushDB(c command.Call) {
	a.flush(c, func(context.Context) ([]int, error) { return []int{c.Client.DB}, nil })
}

// flushAll runs FLUSHALL [ASYNC|SYNC].
func (a *AllKeys) flushAll(c command.Call) { a.flush(c, a.opts.Locks.Databases) }

// flush lets the upstream remove its keys, and then removes the lock keys. So if the upstream
// refuses to remove the data, the locks that protect the data remain. A flush continues if the
// client disconnects.
func (a *AllKeys) flush(c command.Call, databases func(context.Context) ([]int, error)) {
	if errText := flushArgsError(c.Args[1:]); c.Client.Ask == nil && errText != "" {
		c.Out.WriteError(errText)
		return
	}
	name := strings.ToUpper(syntax.Lower(c.Args[0]))
	log := a.opts.Logger.With("command", name, "db", c.Client.DB, c.Client.LogAttr())
	reply, err := []byte(nil), error(nil)
	if c.Client.Ask != nil {
		reply, err = c.Client.Ask(c.Ctx)
	}
	switch {
	case err != nil:
		log.Warn("the lock keys were not removed: the upstream did not reply to the flush", "cause", err)
		c.Out.Fail(err)
		return
	case len(reply) > 0 && reply[0] == '-':
		c.Out.WriteRaw(reply)
		return
	}
	removed, err := a.flushLocks(c.Ctx, c.Client, databases)
	if err != nil {
		log.Warn("not all lock keys were removed", "removed", removed, "cause", err)
		c.Out.WriteError(flushError(removed, err))
		return
	}
	log.Info("lock keys were removed", "removed", removed)
	if c.Client.Ask == nil {
		c.Out.WriteStatus("OK")
		return
	}
	c.Out.WriteRaw(reply)
}

// flushArgsError returns Redis' error for the words after the command, or "".
func flushArgsError(words [][]byte) string {
	if len(words) > 1 || len(words) == 1 && syntax.Lower(words[0]) != "async" && syntax.Lower(words[0]) != "sync" {
		return syntax.ErrSyntax
	}
	return ""
}

// flushError returns the error reply of a flush that did not remove all lock keys.
func flushError(removed int, err error) string {
	code := "ERR"
	if _, ok := errors.AsType[*quorum.NoQuorumError](err); ok {
		code = "NOQUORUM"
	}
	return fmt.Sprintf("%s flush incomplete (all other keys and %s were removed): %v; send it again",
		code, syntax.Count(removed, "lock key"), err)
}

// flushLocks removes the lock keys of some databases, and returns how many it removed. After an
// error, some lock keys may remain.
func (a *AllKeys) flushLocks(
	ctx context.Context, client *command.Client, databases func(context.Context) ([]int, error),
) (removed int, err error) {
	select {
	case a.flushSlot <- struct{}{}:
		defer func() { <-a.flushSlot }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	dbs, err := databases(ctx)
	if err != nil {
		return 0, err
	}
	for _, db := range dbs {
		n, err := a.flushDatabase(ctx, client, db)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// flushDatabase finds and removes the lock keys of one database.
func (a *AllKeys) flushDatabase(ctx context.Context, client *command.Client, db int) (removed int, err error) {
	candidates, err := a.listCandidates(ctx, db, matchAll)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(client.ListedKeys(candidates), readBatch) {
		lockKeys, err := a.presentKeys(ctx, db, part, "")
		if err != nil {
			return removed, err
		}
		n, err := a.removeAll(ctx, client, db, lockKeys)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// removeAll removes keys, each by a separate ballot. removed does not count keys that did not exist
// any more. The error names one key that removeAll could not remove.
func (a *AllKeys) removeAll(
	ctx context.Context, client *command.Client, db int, lockKeys []string,
) (removed int, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallelRemovals)
	for _, key := range lockKeys {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			existed, removeErr := a.opts.Locks.Remove(ctx, a.opts.KeyOnMasters(db, key))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case removeErr != nil:
				err = fmt.Errorf("'%s': %w", syntax.Excerpt(key), removeErr)
			case existed:
				removed++
				a.opts.Audit.Note(command.AuditReleased, client, db, key)
			}
		})
	}
	wg.Wait()
	return removed, err
}
