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

// Span returns the places of the keys, if they do not depend on the words of a call.
func (d Docs) Span() keys.Span {
	if d.FirstArgIsKey {
		return keys.SpanOfOne(1)
	}
	return d.Keys
}

// KeyRule returns the rule for the keys, or nil if the command has none.
func (d Docs) KeyRule() *keys.Rule {
	span := d.Span()
	switch {
	case d.KeysAreCounted:
		return keys.CountedKeys(1, 1)
	case span == keys.Span{}:
		return nil
	}
	return keys.InSpan(span.First, span.Last, span.Step)
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
	find := cmd.Docs.findKeys()
	if find == nil {
		out.WriteSet(0)
		return
	}
	out.WriteSet(1)
	out.Put(Fields{
		"flags", cmd.WriteKeyFlags,
		"begin_search", Fields{"type", "index", "spec", Fields{"index", 1}},
		"find_keys", find,
	})
}

// findKeys returns how to find the keys from index 1 on; nil if there are none, or if that is not
// described.
func (d Docs) findKeys() Fields {
	span := d.Span()
	switch {
	case d.KeysAreCounted:
		return Fields{"type", "keynum", "spec", Fields{"keynumidx", 0, "firstkey", 1, "keystep", 1}}
	case span == keys.Span{}:
		return nil
	}
	last := span.Last
	if last > 0 {
		last -= span.First // a positive last counts from the first key, a negative last from the end
	}
	return Fields{"type", "range", "spec", Fields{"lastkey", last, "keystep", span.Step, "limit", 0}}
}
