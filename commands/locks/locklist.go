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
	// atOnce limits how many keys one request reads from the masters: values may be large.
	atOnce = 50
	// listTime limits a LOCKLIST, including its wait for another one.
	listTime = 10 * time.Second
)

// errSlow is the cause of a context that ends because a LOCKLIST took too long.
var errSlow = fmt.Errorf("cannot list the locks: it took longer than %v; use MATCH or a smaller COUNT", listTime)

// listOptions holds the options of a LOCKLIST.
type listOptions struct {
	match string // a glob
	count int
}

// parseListing reads [MATCH glob] [COUNT n]. failed is an error reply in Redis' wording, or empty.
func parseListing(options [][]byte) (w listOptions, failed string) {
	w.count = defaultCount
	seen := map[string]bool{}
	for ; len(options) > 0; options = options[2:] {
		word := syntax.Lower(options[0])
		if len(options) < 2 || seen[word] {
			return w, syntax.ErrSyntax
		}
		seen[word] = true
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
	if !seen["match"] {
		w.match = "*"
	}
	return w, ""
}

// list implements LOCKLIST [MATCH glob] [COUNT n].
func (h *Holders) list(c command.Call) {
	want, failed := parseListing(c.Args[1:])
	if failed != "" {
		c.SyntaxError(failed)
		return
	}
	l := h.listing(c.Client.DB, want)
	l.client = c.Client
	err := l.collect(c.Ctx)
	if err != nil {
		h.opts.Logger.Info("LOCKLIST failed", "cause", err, c.Client.LogAttr())
		c.Out.Fail(err)
		return
	}
	h.opts.Logger.Info("LOCKLIST", "locks", len(l.found), c.Client.LogAttr())
	c.Out.Array(len(l.found))
	for _, one := range l.found {
		writeLock(c.Out, one)
	}
}

// Locks lists at most count locks of a database whose keys match a glob, as LOCKLIST does for a
// client with all permissions. It takes at most ten seconds, or until ctx ends.
//
// Errors: those of quorum.Cluster.Names and Holdings, or a timeout.
func (h *Holders) Locks(ctx context.Context, db int, match string, count int) ([]Lock, error) {
	l := h.listing(db, listOptions{match, count})
	err := l.collect(ctx)
	return l.found, err
}

func (h *Holders) listing(db int, want listOptions) listing {
	return listing{Holders: h, listOptions: want, db: db, listed: map[string]bool{}, pattern: keys.Compile(want.match)}
}

// listing is a running LOCKLIST. It belongs to one goroutine.
type listing struct {
	*Holders
	listOptions
	db     int
	client *command.Client // nil for a client with all permissions
	found  []Lock
	listed map[string]bool // the keys of found
	// pattern is the compiled match.
	pattern *keys.Pattern
}

// collect searches the masters until there are enough locks. Only one LOCKLIST runs at a time.
func (l *listing) collect(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, errSlow)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := l.opts.Locks.Names(ctx, l.db, func(names []string) (bool, error) {
		fitting, err := l.matching(ctx, names)
		if err != nil {
			return false, err
		}
		for part := range slices.Chunk(fitting, atOnce) {
			if err := l.add(ctx, part); err != nil || len(l.found) == l.count {
				return false, err
			}
		}
		return true, nil
	})
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, errSlow) {
		return errSlow
	}
	return err
}

// matching returns the clients' keys that match the pattern and are not listed yet.
func (l *listing) matching(ctx context.Context, names []string) (fitting []string, err error) {
	for _, name := range names {
		key, ours := strings.CutPrefix(name, l.opts.Prefix)
		if !ours || key == "" || l.listed[key] {
			continue
		}
		if fits, err := l.pattern.Match(key); err != nil {
			return nil, err
		} else if fits {
			fitting = append(fitting, key)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	slices.Sort(fitting)
	return slices.Compact(fitting), nil
}

// add lists the keys that the client may read and that a majority holds, or may hold.
func (l *listing) add(ctx context.Context, candidates []string) error {
	readable, err := l.readable(ctx, candidates)
	if err != nil || len(readable) == 0 {
		return err
	}
	places := make([]quorum.Key, len(readable))
	for i, key := range readable {
		places[i] = l.opts.Place(l.db, key)
	}
	found, err := l.opts.Locks.Holdings(ctx, places)
	if err != nil {
		return err
	}
	for i, h := range found {
		if (h.Status == quorum.StatusHeld || h.Status == quorum.StatusUnclear) && len(l.found) < l.count {
			l.found = append(l.found, describe(readable[i], h))
			l.listed[readable[i]] = true
		}
	}
	return nil
}

// readable returns the keys that the listing may show.
func (l *listing) readable(ctx context.Context, all []string) ([]string, error) {
	if l.client == nil {
		return all, nil
	}
	return l.client.Readable(ctx, all)
}
