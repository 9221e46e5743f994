package command

import (
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
)

// WriteInfo appends the ten elements that COMMAND returns for a command since Redis 7.
func (cmd *Command) WriteInfo(out *Reply) {
	span := cmd.Docs.Span()
	out.WriteArray(10)
	out.WriteBulk(cmd.Name)
	out.WriteInt(int64(cmd.Arity))
	if cmd.hasMovableKeys() {
		out.WriteSet(2)
		out.WriteStatus(cmd.flag())
		out.WriteStatus("movablekeys")
	} else {
		out.WriteSet(1)
		out.WriteStatus(cmd.flag())
	}
	out.WriteInt(int64(span.First))
	out.WriteInt(int64(span.Last))
	out.WriteInt(int64(span.Step))
	categories := cmd.Categories().Names()
	out.WriteSet(len(categories))
	for _, name := range categories {
		out.WriteStatus(name)
	}
	out.WriteSet(0) // tips
	cmd.writeKeySpecs(out)
	out.WriteSet(0) // subcommands; Redis writes an array instead if there are subcommands
}

// Span returns the places of the keys.
func (d Docs) Span() keys.Span {
	if d.FirstArgIsKey {
		return keys.SpanOfOne(1)
	}
	return d.Keys
}

// flag returns the first flag of the command.
func (cmd *Command) flag() string {
	switch {
	case cmd.Docs.Reads:
		return "readonly"
	case !cmd.HasKeys():
		return "loading"
	default:
		return "write"
	}
}

// Categories returns the ACL categories of the command.
func (cmd *Command) Categories() spec.Categories {
	if cmd.Docs.Categories != "" {
		return spec.CategoriesOf(cmd.Docs.Categories)
	}
	return spec.CategoriesByName()[cmd.Name]
}

// WriteKeyFlags appends the flags of a key: how the command accesses it.
func (cmd *Command) WriteKeyFlags(out *Reply) {
	out.WriteSet(2)
	if cmd.Docs.Reads {
		out.WriteStatus("RO")
		out.WriteStatus("access")
		return
	}
	out.WriteStatus("RW")
	out.WriteStatus("update")
}

// writeKeySpecs appends the places of the keys, from index 1 on, with their flags.
func (cmd *Command) writeKeySpecs(out *Reply) {
	span := cmd.Docs.Span()
	if span == (keys.Span{}) {
		out.WriteSet(0)
		return
	}
	last := span.Last
	if last > 0 {
		// A positive last counts from the first key, a negative last from the end.
		last -= span.First
	}
	out.WriteSet(1)
	out.Put(Fields{
		"flags", cmd.WriteKeyFlags,
		"begin_search", Fields{"type", "index", "spec", Fields{"index", 1}},
		"find_keys", Fields{"type", "range", "spec", Fields{"lastkey", last, "keystep", span.Step, "limit", 0}},
	})
}
