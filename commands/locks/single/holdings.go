package single

import (
	"context"
	"slices"
	"strings"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/locks/holders"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
)

// scanCount is how many keys the upstream looks at for a page of names.
const scanCount = "1000"

// PTTLs that are no time.
const (
	noKey   = -2
	endless = -1
)

// Holders are what LOCKINFO, LOCKLIST and FORCEUNLOCK of a client ask: lock keys stand at the upstream, the others on the masters.
// Keys and names have the prefix that they have on the masters.
func (l *Locks) Holders(c command.Call, masters holders.Locks, prefix string) holders.Locks {
	return &both{ForClient: l.For(c), masters: masters, prefix: prefix}
}

type both struct {
	*ForClient
	masters holders.Locks
	prefix  string
}

// here is a key as the upstream has it; ok is false for one of the masters.
func (b *both) here(key quorum.Key) (at quorum.Key, ok bool) {
	name, ours := strings.CutPrefix(key.Name, b.prefix)
	return quorum.Key{DB: key.DB, Name: name}, ours && b.Has([]byte(name))
}

// Holdings are what stands under some keys. Errors: a [Refusal], why the upstream could not be asked, and those of the masters.
func (b *both) Holdings(ctx context.Context, all []quorum.Key) ([]quorum.Holding, error) {
	found := make([]quorum.Holding, len(all))
	var others []quorum.Key
	var at []int
	for i, key := range all {
		here, ok := b.here(key)
		if !ok {
			others, at = append(others, key), append(at, i)
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var err error
		if found[i], err = b.holding(here); err != nil {
			return nil, err
		}
	}
	if len(others) == 0 {
		return found, nil
	}
	there, err := b.masters.Holdings(ctx, others)
	if err != nil {
		return nil, err
	}
	for i, one := range there {
		found[at[i]] = one
	}
	return found, nil
}

// holding asks the upstream for one.
func (b *both) holding(key quorum.Key) (h quorum.Holding, err error) {
	left, err := b.number("PTTL", key.Name)
	if err != nil {
		return h, err
	}
	kind := "none"
	if left != noKey {
		reply, err := b.put("TYPE", key.Name)
		if err != nil {
			return h, err
		}
		kind = resp.FirstLine(reply)
	}
	h.Waiters = b.queues.LenOf(key)
	says := "held"
	switch {
	case kind == "none":
		h.Status, says = quorum.StatusFree, "free"
	case left == endless:
		h.Status, h.Left = quorum.StatusHeld, quorum.Endless
	default:
		h.Status, h.Left = quorum.StatusHeld, time.Duration(left)*time.Millisecond
	}
	if h.Status == quorum.StatusHeld && kind != "string" {
		says += " (" + kind + ")"
	}
	h.Shares = []quorum.Share{{Server: b.opts.Name(), Says: says}}
	return h, nil
}

// Names has the names of all lock keys at the upstream taken, a page after the other, then those of other keys on the masters. Errors are those of Holdings.
func (b *both) Names(ctx context.Context, db int, page func([]string) (bool, error)) error {
	if more, err := b.scan(ctx, page); err != nil || !more {
		return err
	}
	return b.masters.Names(ctx, db, func(names []string) (bool, error) {
		return page(slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			_, here := b.here(quorum.Key{Name: name})
			return here
		}))
	})
}

func (b *both) scan(ctx context.Context, page func([]string) (bool, error)) (more bool, err error) {
	for cursor := "0"; ; {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		words := []string{"SCAN", cursor, "COUNT", scanCount}
		if len(b.opts.LockKeys) == 1 { // of several, the upstream would have to be looked through for each
			words = append(words, "MATCH", b.opts.LockKeys[0])
		}
		reply, err := b.put(words...)
		if err != nil {
			return false, err
		}
		texts := resp.Texts(reply)
		if len(texts) == 0 {
			return false, unexpected("SCAN", reply)
		}
		var names []string
		for _, name := range texts[1:] {
			if b.Has([]byte(name)) {
				names = append(names, b.prefix+name)
			}
		}
		if more, err := page(names); err != nil || !more {
			return false, err
		}
		if cursor = texts[0]; cursor == "0" {
			return true, nil
		}
	}
}

// Remove ends a lock, whatever holds it, and reports whether anything did.
func (b *both) Remove(ctx context.Context, key quorum.Key) (bool, error) {
	here, ok := b.here(key)
	if !ok {
		return b.masters.Remove(ctx, key)
	}
	removed, err := b.number("DEL", here.Name)
	if removed == 0 {
		return false, err
	}
	b.queues.Released(here)
	return true, nil
}
