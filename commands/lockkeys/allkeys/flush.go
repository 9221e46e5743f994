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

// removers is how many lock keys are removed at a time.
const removers = 16

// flushDB is FLUSHDB [ASYNC|SYNC].
func (a *AllKeys) flushDB(c command.Call) {
	a.flush(c, func(context.Context) ([]int, error) { return []int{c.Client.DB}, nil })
}

// flushAll is FLUSHALL [ASYNC|SYNC].
func (a *AllKeys) flushAll(c command.Call) { a.flush(c, a.opts.Locks.Databases) }

// flush has the upstream remove its keys, and then removes the lock keys: locks are never gone
// while the data that they protect are refused to be removed. A client that leaves does not end it.
func (a *AllKeys) flush(c command.Call, databases func(context.Context) ([]int, error)) {
	if failed := flushFailure(c.Args[1:]); c.Client.Ask == nil && failed != "" {
		c.Out.Error(failed)
		return
	}
	log := a.opts.Logger.With("command", strings.ToUpper(syntax.Lower(c.Args[0])), "db", c.Client.DB, c.Client.LogAttr())
	reply, err := []byte(nil), error(nil)
	if c.Client.Ask != nil {
		reply, err = c.Client.Ask(c.Ctx)
	}
	switch {
	case err != nil:
		log.Warn("what the upstream did of a flush is not known; the lock keys stay", "error", err)
		c.Out.Fail(err)
		return
	case len(reply) > 0 && reply[0] == '-':
		c.Out.Raw(reply)
		return
	}
	removed, err := a.flushLocks(c.Ctx, c.Client, databases)
	if err != nil {
		log.Warn("lock keys were removed in part", "removed", removed, "error", err)
		c.Out.Error(flushError(removed, err))
		return
	}
	log.Info("lock keys were removed", "removed", removed)
	if c.Client.Ask == nil {
		c.Out.Status("OK")
		return
	}
	c.Out.Raw(reply)
}

// flushFailure is Redis' error for the words after the command, or nothing.
func flushFailure(words [][]byte) string {
	if len(words) > 1 || len(words) == 1 && syntax.Lower(words[0]) != "async" && syntax.Lower(words[0]) != "sync" {
		return syntax.ErrSyntax
	}
	return ""
}

// flushError is the error reply of a flush that did not remove all lock keys.
func flushError(removed int, err error) string {
	code := "ERR"
	if _, ok := errors.AsType[*quorum.NoQuorumError](err); ok {
		code = "NOQUORUM"
	}
	return fmt.Sprintf("%s not all lock keys are removed (%d are, and all other keys): %v", code, removed, err)
}

// flushLocks removes the lock keys of some databases, and returns how many. The error says what it
// ended with.
func (a *AllKeys) flushLocks(ctx context.Context, client *command.Client, databases func(context.Context) ([]int, error)) (removed int, err error) {
	select {
	case a.flushing <- struct{}{}:
		defer func() { <-a.flushing }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	all, err := databases(ctx)
	if err != nil {
		return 0, err
	}
	for _, db := range all {
		n, err := a.flushDatabase(ctx, client, db)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// flushDatabase removes the lock keys of one, as they are found.
func (a *AllKeys) flushDatabase(ctx context.Context, client *command.Client, db int) (removed int, err error) {
	candidates, err := a.matching(ctx, db, everything)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(candidates, atOnce) {
		held, err := a.present(ctx, db, part, "")
		if err != nil {
			return removed, err
		}
		n, err := a.removeAll(ctx, client, db, held)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// removeAll removes keys, each by a ballot of its own, and tells of how many it was the one to do
// so. The error is about one that was not removed.
func (a *AllKeys) removeAll(ctx context.Context, client *command.Client, db int, held []string) (removed int, err error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	turns := make(chan struct{}, removers)
	for _, key := range held {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			was, failed := a.opts.Locks.Remove(ctx, a.opts.Place(db, key))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case failed != nil:
				err = fmt.Errorf("'%s': %w", syntax.Shown(key), failed)
			case was:
				removed++
				a.opts.Audit.Note(command.AuditReleased, client, db, key)
			}
		})
	}
	running.Wait()
	return removed, err
}
