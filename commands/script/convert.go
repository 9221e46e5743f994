package script

import (
	"fmt"
	"strings"

	"redlock-proxy/commands/register"
	"redlock-proxy/commands/script/lua"
)

// toLua is a reply as scripts see it.
func (r *run) toLua(state *lua.State, reply register.Reply) lua.Value {
	switch reply.Kind {
	case register.Int:
		return float64(reply.Int)
	case register.Bulk:
		return state.Text(reply.Str)
	case register.Status:
		t := state.NewTable()
		state.Set(t, "ok", state.Text(reply.Str))
		return t
	case register.Error:
		t := errorTable(state, "-"+reply.Str)
		state.Set(t, "ignore_error_stats_update", true) // Redis has it there, and pairs shows it
		return t
	case register.Array:
		values := make([]lua.Value, len(reply.Elems))
		for i, e := range reply.Elems {
			values[i] = r.toLua(state, e)
		}
		return state.NewArray(values)
	}
	if r.resp3 {
		return nil
	}
	return false
}

// errorTable is an error as a value: its code and text in err. A text that does not begin with '-' and a code gets ERR.
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

// replyWriter makes a reply of what a script returns.
type replyWriter struct {
	run  *run
	size int
}

func (r *run) reply(v lua.Value) (register.Reply, error) {
	w := replyWriter{run: r}
	return w.value(v, 0)
}

// count charges the reply for an element and its bytes.
func (w *replyWriter) count(bytes, depth int) error {
	w.size += bytes + 16
	if most := w.run.Limits.Reply; w.size > most {
		return fmt.Errorf("%w returned more than %d bytes", errLimit, most)
	}
	if depth > maxReplyDepth {
		return fmt.Errorf("%w returned tables that nest deeper than %d", errLimit, maxReplyDepth)
	}
	return nil
}

func (w *replyWriter) value(v lua.Value, depth int) (register.Reply, error) {
	reply := register.Reply{Kind: register.Nil}
	switch v := v.(type) {
	case string:
		reply = register.Text(v)
	case float64:
		reply = register.Number(lua.Truncate(v))
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

// boolean is true as 1 and false as nil, or 0 where the script speaks RESP3.
func (w *replyWriter) boolean(b bool) register.Reply {
	switch {
	case b:
		return register.Number(1)
	case w.run.resp3:
		return register.Number(0)
	}
	return register.Reply{Kind: register.Nil}
}

// table is a reply by the name of a field, or an array.
func (w *replyWriter) table(t *lua.Table, depth int) (register.Reply, error) {
	if text, ok := t.Get("err").(string); ok {
		return register.Fail(oneLine(strings.TrimRight(cString(text), "\r\n"))), w.count(len(text), depth)
	}
	if text, ok := t.Get("ok").(string); ok {
		return register.Reply{Kind: register.Status, Str: oneLine(cString(text))}, w.count(len(text), depth)
	}
	if n, ok := t.Get("double").(float64); ok {
		return register.Text(lua.FormatG(n, 17)), nil
	}
	if text, ok := t.Get("big_number").(string); ok {
		return register.Text(oneLine(text)), w.count(len(text), depth)
	}
	if verbatim, ok := t.Get("verbatim_string").(*lua.Table); ok {
		_, hasFormat := verbatim.Get("format").(string)
		if text, ok := verbatim.Get("string").(string); ok && hasFormat {
			return register.Text(text), w.count(len(text), depth)
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

// entries are the keys of a table, with their values if they are wanted.
func (w *replyWriter) entries(t *lua.Table, depth int, values bool) (register.Reply, error) {
	reply := register.List()
	for key, value, _ := t.Next(nil); key != nil; key, value, _ = t.Next(key) {
		parts := []lua.Value{key, value}
		if !values {
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

// array is a table's elements up to the first nil.
func (w *replyWriter) array(t *lua.Table, depth int) (register.Reply, error) {
	reply := register.List()
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
