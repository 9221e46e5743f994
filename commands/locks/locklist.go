package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

const (
	// defaultCount and maxCount are the default and the highest COUNT of a LOCKLIST.
	defaultCount, maxCount = 100, 1000
	// readBatch limits how many keys one request reads from the masters: values may be large.
	readBatch = 50
	// listTimeout limits a LOCKLIST, including its wait for another LOCKLIST.
	listTimeout = 10 * time.Second
)

// errListTimeout reports that a LOCKLIST took too long.
var errListTimeout = fmt.Errorf("cannot list the locks: it took longer than %v; use MATCH or a smaller COUNT", listTimeout)

// listOptions holds the options of a LOCKLIST.
type listOptions struct {
	match string // a glob
	count int
}

// parseListOptions reads [MATCH glob] [COUNT n]. errText is an error reply in Redis' wording, or
// empty.
func parseListOptions(options [][]byte) (w listOptions, errText string) {
	w.count = defaultCount
	given := map[string]bool{}
	for ; len(options) > 0; options = options[2:] {
		word := syntax.Lower(options[0])
		if len(options) < 2 || given[word] {
			return w, syntax.ErrSyntax
		}
		given[word] = true
		switch word {
		case "match":
			w.match = string(options[1])
		case "count":
			n, ok := syntax.Int(options[1])
			switch {
			case !ok:
				return w, syntax.ErrNotInteger
			case n < 1 || n > maxCount:
				return w, fmt.Sprintf("ERR value is out of range, value must between 1 and %d", maxCount)
			}
			w.count = int(n)
		default:
			return w, syntax.ErrSyntax
		}
	}
	if !given["match"] {
		w.match = "*"
	}
	return w, ""
}

// list implements LOCKLIST [MATCH glob] [COUNT n].
func (h *OperatorCommands) list(c command.Call) {
	options, errText := parseListOptions(c.Args[1:])
	if errText != "" {
		c.SyntaxError(errText)
		return
	}
	l := h.newListing(c.Client.DB, options)
	l.client = c.Client
	err := l.collect(c.Ctx)
	if err != nil {
		h.opts.Logger.Info("LOCKLIST failed", "cause", err, c.Client.LogAttr())
		c.Out.Fail(err)
		return
	}
	h.opts.Logger.Info("LOCKLIST", "locks", len(l.foundLocks), c.Client.LogAttr())
	c.Out.WriteArray(len(l.foundLocks))
	for _, lock := range l.foundLocks {
		writeLock(c.Out, lock)
	}
}

// Locks lists at most count locks of a database whose keys match a glob, as LOCKLIST does for a
// client with all permissions. It stops after ten seconds, or when ctx ends.
//
// The errors are those of quorum.Cluster.Names and Holdings, keys.ErrTooComplex, or a timeout.
func (h *OperatorCommands) Locks(ctx context.Context, db int, match string, count int) ([]Lock, error) {
	l := h.newListing(db, listOptions{match, count})
	err := l.collect(ctx)
	return l.foundLocks, err
}

func (h *OperatorCommands) newListing(db int, options listOptions) listing {
	return listing{OperatorCommands: h, listOptions: options, db: db, listedKeys: map[string]bool{}, pattern: keys.Compile(options.match)}
}

// listing holds the state of a running LOCKLIST. It belongs to one goroutine.
type listing struct {
	*OperatorCommands
	listOptions
	db         int
	client     *command.Client // nil for a client with all permissions
	foundLocks []Lock
	listedKeys map[string]bool // the keys of foundLocks
	// pattern is the compiled match.
	pattern *keys.Pattern
}

// collect searches the masters until it has found count locks. Only one LOCKLIST runs at a time.
func (l *listing) collect(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, errListTimeout)
	defer cancel()
	select {
	case l.listSlot <- struct{}{}:
		defer func() { <-l.listSlot }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := l.opts.Locks.Names(ctx, l.db, func(names []string) (bool, error) {
		matches, err := l.matchNames(ctx, names)
		if err != nil {
			return false, err
		}
		for batch := range slices.Chunk(matches, readBatch) {
			if err := l.add(ctx, batch); err != nil || len(l.foundLocks) == l.count {
				return false, err
			}
		}
		return true, nil
	})
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, errListTimeout) {
		return errListTimeout
	}
	return err
}

// matchNames returns the clients' keys that match the pattern and are not listed yet.
func (l *listing) matchNames(ctx context.Context, names []string) (matches []string, err error) {
	for _, name := range names {
		key, hasPrefix := strings.CutPrefix(name, l.opts.Prefix)
		if !hasPrefix || key == "" || l.listedKeys[key] {
			continue
		}
		if isMatch, err := l.pattern.Match(key); err != nil {
			return nil, err
		} else if isMatch {
			matches = append(matches, key)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	slices.Sort(matches)
	return slices.Compact(matches), nil
}

// add lists the keys that the client may read and that a majority holds, or may hold.
func (l *listing) add(ctx context.Context, candidates []string) error {
	readable, err := l.filterReadable(ctx, candidates)
	if err != nil || len(readable) == 0 {
		return err
	}
	lockKeys := make([]quorum.Key, len(readable))
	for i, key := range readable {
		lockKeys[i] = l.opts.KeyOnMasters(l.db, key)
	}
	holdings, err := l.opts.Locks.Holdings(ctx, lockKeys)
	if err != nil {
		return err
	}
	for i, h := range holdings {
		if (h.Status == quorum.StatusHeld || h.Status == quorum.StatusUnclear) && len(l.foundLocks) < l.count {
			l.foundLocks = append(l.foundLocks, l.describe(readable[i], lockKeys[i], h))
			l.listedKeys[readable[i]] = true
		}
	}
	return nil
}

// filterReadable returns the keys that the listing may show.
func (l *listing) filterReadable(ctx context.Context, candidates []string) ([]string, error) {
	if l.client == nil {
		return candidates, nil
	}
	return l.client.FilterReadable(ctx, candidates)
}
