package script

import (
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/clib"
)

// toLua converts a reply to a Lua value.
func (r *run) toLua(state *lua.State, reply keyspace.Reply) lua.Value {
	switch reply.Kind {
	case keyspace.Int:
		return float64(reply.Int)
	case keyspace.Bulk:
		return state.Text(reply.Str)
	case keyspace.Status:
		t := state.NewTable()
		state.Set(t, "ok", state.Text(reply.Str))
		return t
	case keyspace.Error:
		t := errorTable(state, "-"+reply.Str)
		state.Set(t, "ignore_error_stats_update", true) // as in Redis; pairs shows it
		return t
	case keyspace.Nil, keyspace.NilArray:
		if r.resp3 {
			return nil
		}
		return false
	}
	if r.resp3 {
		return r.toLuaRESP3(state, reply)
	}
	if reply.Kind == keyspace.Double {
		return state.Text(reply.InRESP2().Str)
	}
	return r.array(state, reply.Elems)
}

func (r *run) array(state *lua.State, elems []keyspace.Reply) lua.Value {
	values := make([]lua.Value, len(elems))
	for i, e := range elems {
		values[i] = r.toLua(state, e)
	}
	return state.NewArray(values)
}

// toLuaRESP3 converts an array, or a reply of a type that only RESP3 has, for a script that asked
// for RESP3.
func (r *run) toLuaRESP3(state *lua.State, reply keyspace.Reply) lua.Value {
	elems := reply.Elems
	switch reply.Kind {
	case keyspace.Double:
		return singleField(state, "double", reply.Float)
	case keyspace.Map:
		entries := state.NewTable()
		for i := 0; i < len(elems); i += 2 {
			state.Set(entries, r.toLua(state, elems[i]), r.toLua(state, elems[i+1]))
		}
		return singleField(state, "map", entries)
	case keyspace.Set:
		members := state.NewTable()
		for _, e := range elems {
			state.Set(members, r.toLua(state, e), true)
		}
		return singleField(state, "set", members)
	case keyspace.Pairs:
		var pairs []keyspace.Reply
		for pair := range slices.Chunk(elems, 2) {
			pairs = append(pairs, keyspace.ArrayReply(pair...))
		}
		return r.array(state, pairs)
	}
	return r.array(state, elems)
}

func singleField(state *lua.State, field string, value lua.Value) lua.Value {
	t := state.NewTable()
	state.Set(t, field, value)
	return t
}

// errorTable returns an error as a Lua value: a table with code and text in the field err. The code
// is ERR unless the text begins with '-' and a code.
func errorTable(state *lua.State, text string) *lua.Table {
	code, text := "ERR", cString(text)
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		if text = rest; strings.Contains(rest, " ") {
			code, text, _ = strings.Cut(rest, " ")
		}
	}
	t := state.NewTable()
	state.Set(t, "err", state.Text(code+" "+strings.Trim(text, "\r\n")))
	return t
}

// replyBuilder converts the result of a script to a reply.
type replyBuilder struct {
	run  *run
	size int
}

func (r *run) toReply(v lua.Value) (keyspace.Reply, error) {
	w := replyBuilder{run: r}
	return w.value(v, 0)
}

// count adds an element and its bytes to the size of the reply, and checks the limits.
func (w *replyBuilder) count(bytes, depth int) error {
	w.size += bytes + 16
	if limit := w.run.Limits.Reply; w.size > limit {
		return fmt.Errorf("%w returned more than %d bytes", errLimit, limit)
	}
	if depth > maxReplyDepth {
		return fmt.Errorf("%w returned tables that nest deeper than %d", errLimit, maxReplyDepth)
	}
	return nil
}

func (w *replyBuilder) value(v lua.Value, depth int) (keyspace.Reply, error) {
	reply := keyspace.Reply{Kind: keyspace.Nil}
	switch v := v.(type) {
	case string:
		reply = keyspace.BulkReply(v)
	case float64:
		reply = keyspace.IntReply(clib.Truncate(v))
	case bool:
		reply = w.boolean(v)
	case *lua.Table:
		if err := w.count(0, depth); err != nil {
			return reply, err
		}
		return w.table(v, depth)
	}
	return reply, w.count(len(reply.Str), depth)
}

// boolean converts true to 1, and false to nil. If the script asked for RESP3, it converts false to
// 0.
func (w *replyBuilder) boolean(b bool) keyspace.Reply {
	switch {
	case b:
		return keyspace.IntReply(1)
	case w.run.resp3:
		return keyspace.IntReply(0)
	}
	return keyspace.Reply{Kind: keyspace.Nil}
}

// table converts a table to a reply of the type that one of its fields names, or to an array.
func (w *replyBuilder) table(t *lua.Table, depth int) (keyspace.Reply, error) {
	if text, ok := t.Get("err").(string); ok {
		return keyspace.ErrorReply(syntax.OneLine(strings.TrimRight(cString(text), "\r\n"))), w.count(len(text), depth)
	}
	if text, ok := t.Get("ok").(string); ok {
		return keyspace.Reply{Kind: keyspace.Status, Str: syntax.OneLine(cString(text))}, w.count(len(text), depth)
	}
	if n, ok := t.Get("double").(float64); ok {
		return keyspace.DoubleReply(n), nil
	}
	if text, ok := t.Get("big_number").(string); ok {
		return keyspace.BulkReply(syntax.OneLine(text)), w.count(len(text), depth)
	}
	if verbatim, ok := t.Get("verbatim_string").(*lua.Table); ok {
		_, hasFormat := verbatim.Get("format").(string)
		if text, ok := verbatim.Get("string").(string); ok && hasFormat {
			return keyspace.BulkReply(text), w.count(len(text), depth)
		}
	}
	if entries, ok := t.Get("map").(*lua.Table); ok {
		return w.entries(entries, depth, true)
	}
	if entries, ok := t.Get("set").(*lua.Table); ok {
		return w.entries(entries, depth, false)
	}
	return w.array(t, depth)
}

// entries converts the keys of a table, with their values if withValues is set.
func (w *replyBuilder) entries(t *lua.Table, depth int, withValues bool) (keyspace.Reply, error) {
	reply := keyspace.Reply{Kind: keyspace.Set}
	if withValues {
		reply.Kind = keyspace.Map
	}
	for key, value, _ := t.Next(nil); key != nil; key, value, _ = t.Next(key) {
		parts := []lua.Value{key, value}
		if !withValues {
			parts = parts[:1]
		}
		for _, v := range parts {
			e, err := w.value(v, depth+1)
			if err != nil {
				return reply, err
			}
			reply.Elems = append(reply.Elems, e)
		}
	}
	return reply, nil
}

// array converts a table's elements up to the first nil.
func (w *replyBuilder) array(t *lua.Table, depth int) (keyspace.Reply, error) {
	reply := keyspace.ArrayReply()
	for i := 1.0; ; i++ {
		v := t.Get(i)
		if v == nil {
			return reply, nil
		}
		e, err := w.value(v, depth+1)
		if err != nil {
			return reply, err
		}
		reply.Elems = append(reply.Elems, e)
	}
}
