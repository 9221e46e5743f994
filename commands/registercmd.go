package commands

import (
	"context"

	"redlock-proxy/commands/register"
)

// cmdRegister is a command on lock keys.
func (t *Table) cmdRegister(ctx context.Context, c *Client, args [][]byte, out *Reply) {
	words := texts(args)
	if t.acquire(ctx, c, words, out) {
		return
	}
	p := commandProgram(c, words)
	t.carry(ctx, c, p, out)
}

// carry performs a program of a client and writes its reply.
func (t *Table) carry(ctx context.Context, c *Client, p *program, out *Reply) {
	a, err := t.perform(ctx, p)
	if err != nil {
		out.Error(errorText(err))
		return
	}
	c.remember(p.db, a.edits)
	t.conclude(ctx, p, a)
	t.undoing(ctx, p, a, out)
	out.value(a.reply)
}

// commandProgram is a command as a program.
func commandProgram(c *Client, words []string) *program {
	keys := register.Keys(words)
	return &program{
		db: c.DB, keys: distinct(keys), guesses: guessesFor(c, words, keys),
		run: func(_ context.Context, s *register.Space) (register.Reply, [][]string, error) {
			reply, err := s.Do(words)
			return reply, nil, err
		},
	}
}

// texts are words as strings.
func texts(words [][]byte) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

// distinct drops what is there already.
func distinct(keys []string) []string {
	var once []string
	known := map[string]bool{}
	for _, key := range keys {
		if !known[key] {
			known[key] = true
			once = append(once, key)
		}
	}
	return once
}

// value appends a reply of a program.
func (r *Reply) value(v register.Reply) {
	switch v.Kind {
	case register.Nil:
		r.Null()
	case register.NilArray:
		r.NullArray()
	case register.Int:
		r.Int(v.Int)
	case register.Bulk:
		r.Bulk(v.Str)
	case register.Status:
		r.Status(v.Str)
	case register.Error:
		r.Error(v.Str)
	case register.Array:
		r.Array(len(v.Elems))
		for _, e := range v.Elems {
			r.value(e)
		}
	}
}
