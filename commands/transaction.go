package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"redlock-proxy/commands/register"
)

// watched are the lock keys that a client watches, with what they held then.
type watched struct {
	db   int
	keys guess
	// changed is set when the client has changed one of them itself.
	changed bool
}

// Watching reports whether the client watches lock keys.
func (c *Client) Watching() bool { return len(c.watched.keys) > 0 }

// Unwatch forgets the keys that it watches.
func (c *Client) Unwatch() { c.watched = watched{} }

// Watch is WATCH of lock keys: what they hold is remembered, and an EXEC that does not
// find it again is not carried out. Unlike on a Redis, a key that others have changed
// and changed back, or of which they have only changed the time, counts as the same.
func (t *Table) Watch(ctx context.Context, c *Client, keys [][]byte, out *Reply) {
	if c.Watching() && c.watched.db != c.DB {
		out.Error("ERR WATCH of lock keys in two databases")
		return
	}
	names := distinct(texts(keys))
	done, err := t.perform(ctx, watchProgram(c.DB, names))
	switch {
	case err != nil:
		out.Error(errorText(err))
		return
	case done.reply.Kind == register.Error:
		out.Error(done.reply.Str)
		return
	}
	if !c.Watching() {
		c.watched = watched{db: c.DB, keys: guess{}}
	}
	for i, key := range names {
		if _, already := c.watched.keys[key]; !already {
			c.watched.keys[key] = entryOf(done.reply.Elems[i])
		}
	}
	out.Status("OK")
}

// watchProgram replies with what keys hold, as MGET would.
func watchProgram(db int, keys []string) *program {
	return &program{db: db, keys: keys, run: func(_ context.Context, s *register.Space) (register.Reply, [][]string, error) {
		held := make([]register.Reply, len(keys))
		for i, key := range keys {
			value, present, err := s.Holds(key)
			if err != nil {
				return register.Reply{}, nil, err
			}
			if present {
				held[i] = register.Text(value)
			}
		}
		return register.List(held...), nil, nil
	}}
}

// entryOf is a key that is watched, from a reply to GET.
func entryOf(r register.Reply) register.Entry {
	return register.Entry{Present: r.Kind == register.Bulk, Value: r.Str, Left: register.Unknown}
}

// Transaction is what a client has queued behind its MULTI. The zero value is an
// empty one.
type Transaction struct {
	queued  [][]string
	size    int
	aborted bool
}

// maxQueued bounds the bytes of a transaction's commands.
const maxQueued = 1 << 20

// Queue adds a command on lock keys to a transaction and answers QUEUED. After an
// error, EXEC answers EXECABORT.
func (t *Table) Queue(_ *Client, tx *Transaction, words [][]byte, out *Reply) {
	if failed := t.queueFailure(tx, words); failed != "" {
		tx.aborted = true
		out.Error(failed)
		return
	}
	tx.queued = append(tx.queued, texts(words))
	for _, w := range words {
		tx.size += len(w)
	}
	out.Status("QUEUED")
}

func (t *Table) queueFailure(tx *Transaction, words [][]byte) string {
	name := lower(words[0])
	switch {
	case register.Supported(name) && !register.Fits(name, len(words)), isScript(name) && len(words) < 3:
		return wrongArity(name)
	case !register.Supported(name) && !isScript(name):
		return fmt.Sprintf("ERR '%s' cannot be part of a transaction on lock keys", shown(words[0]))
	case tx.size > maxQueued:
		return fmt.Sprintf("ERR a transaction on lock keys is limited to %d bytes", maxQueued)
	}
	return ""
}

// Exec is EXEC: all that was queued, made as one edit under the condition that the
// watched keys hold what they held. Whatever comes of it, nothing is watched any more.
func (t *Table) Exec(ctx context.Context, c *Client, tx *Transaction, out *Reply) {
	w := c.watched
	c.Unwatch()
	switch {
	case tx.aborted:
		out.Error("EXECABORT Transaction discarded because of previous errors.")
		return
	case len(w.keys) > 0 && w.db != c.DB:
		out.Error("EXECABORT Transaction discarded because of: the watched lock keys are in another database")
		return
	case w.changed:
		out.NullArray()
		return
	}
	parts := make([]*program, len(tx.queued))
	for i, words := range tx.queued {
		part, err := t.part(ctx, c, words)
		if err != nil {
			out.Error(errorText(err))
			return
		}
		parts[i] = part
	}
	t.carry(ctx, c, execProgram(c.DB, w.keys, parts), out)
}

// part is a queued command as a program.
func (t *Table) part(ctx context.Context, c *Client, words []string) (*program, error) {
	if !isScript(lower([]byte(words[0]))) {
		return commandProgram(c, words), nil
	}
	inv, failed, err := t.invocation(ctx, words)
	switch {
	case err != nil:
		return nil, err
	case failed != "":
		return &program{run: func(context.Context, *register.Space) (register.Reply, [][]string, error) {
			return register.Fail(failed), nil, nil
		}}, nil
	}
	return t.scriptProgram(c, inv), nil
}

// execProgram is a transaction as a program.
func execProgram(db int, watched guess, parts []*program) *program {
	watchedKeys := slices.Sorted(maps.Keys(watched))
	p := &program{db: db, keys: slices.Clone(watchedKeys)}
	likely := maps.Clone(watched)
	if likely == nil {
		likely = guess{}
	}
	for _, part := range parts {
		p.keys = append(p.keys, part.keys...)
		if len(part.guesses) > 0 {
			likely.add(part.guesses[0])
		}
	}
	p.keys, p.guesses = distinct(p.keys), []guess{likely}
	p.run = func(ctx context.Context, s *register.Space) (register.Reply, [][]string, error) {
		for _, key := range watchedKeys {
			value, present, err := s.Holds(key)
			if was := watched[key]; err != nil || present != was.Present || present && value != was.Value {
				return register.Reply{Kind: register.NilArray}, nil, err
			}
		}
		return runAll(ctx, parts, s)
	}
	return p
}

// runAll runs programs one behind the other.
func runAll(ctx context.Context, parts []*program, s *register.Space) (register.Reply, [][]string, error) {
	replies := make([]register.Reply, len(parts))
	var asides [][]string
	for i, part := range parts {
		reply, more, err := part.run(ctx, s)
		if err != nil {
			return register.Reply{}, nil, err
		}
		replies[i], asides = reply, append(asides, more...)
	}
	return register.List(replies...), asides, nil
}

// add takes over what another guess says of other keys.
func (g guess) add(other guess) {
	for key, e := range other {
		if _, known := g[key]; !known {
			g[key] = e
		}
	}
}
