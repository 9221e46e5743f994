package commands

import (
	"context"
	"fmt"
)

// cmdCommand is COMMAND with its subcommands.
func (t *Table) cmdCommand(_ context.Context, _ *Client, args [][]byte, out *Reply) {
	if len(args) == 1 {
		t.commandInfo(t.ordered, out)
		return
	}
	rest := args[2:]
	switch sub := lower(args[1]); {
	case sub == "count" && len(rest) > 0, sub == "getkeys" && len(rest) == 0:
		out.Error(fmt.Sprintf("ERR wrong number of arguments for 'command|%s' command", sub))
	case sub == "count":
		out.Int(int64(len(t.ordered)))
	case sub == "list":
		t.commandList(rest, out)
	case sub == "info":
		t.commandInfo(t.named(rest), out)
	case sub == "docs":
		t.commandDocs(t.named(rest), out)
	case sub == "getkeys":
		t.commandGetKeys(rest, out)
	default:
		unknownSubcommand("COMMAND", args[1], out)
	}
}

// named finds commands by name, all of them for no name, nil for an unknown one.
func (t *Table) named(names [][]byte) []*Command {
	if len(names) == 0 {
		return t.ordered
	}
	found := make([]*Command, len(names))
	for i, name := range names {
		found[i] = t.listed(name)
	}
	return found
}

// commandList takes no FILTERBY.
func (t *Table) commandList(options [][]byte, out *Reply) {
	if len(options) > 0 {
		out.Error(errSyntax.Error())
		return
	}
	out.Array(len(t.ordered))
	for _, c := range t.ordered {
		out.Bulk(c.Name)
	}
}

func (t *Table) commandInfo(which []*Command, out *Reply) {
	out.Array(len(which))
	for _, c := range which {
		if c == nil {
			out.Null()
			continue
		}
		c.writeInfo(out)
	}
}

// writeInfo appends the ten elements that COMMAND has for a command since
// Redis 7.
func (cmd *Command) writeInfo(out *Reply) {
	keys := cmd.docs.span()
	out.Array(10)
	out.Bulk(cmd.Name)
	out.Int(int64(cmd.arity))
	out.Set(1)
	out.Status(cmd.flag())
	out.Int(int64(keys.first))
	out.Int(int64(keys.last))
	out.Int(int64(keys.step))
	out.Set(1)
	out.Status(cmd.category())
	out.Set(0) // tips
	cmd.writeKeySpecs(out)
	out.Set(0) // subcommands; Redis has an array only where there are some
}

// span is where the keys stand.
func (d docs) span() span {
	if d.keyed {
		return one(1)
	}
	return d.keys
}

// flag is the first of the command's flags.
func (cmd *Command) flag() string {
	switch {
	case cmd.docs.span() == span{}:
		return "loading"
	case cmd.docs.reads:
		return "readonly"
	default:
		return "write"
	}
}

// category is the command's category in Redis' ACL.
func (cmd *Command) category() string {
	switch {
	case cmd.docs.group == "scripting":
		return "@scripting"
	case cmd.docs.span() == span{}:
		return "@connection"
	case cmd.docs.reads:
		return "@read"
	default:
		return "@write"
	}
}

// writeKeyFlags says what is done with a key.
func (cmd *Command) writeKeyFlags(out *Reply) {
	out.Set(2)
	if cmd.docs.reads {
		out.Status("RO")
		out.Status("access")
		return
	}
	out.Status("RW")
	out.Status("update")
}

// writeKeySpecs says where the keys stand, from index 1 on, and what is done with
// them.
func (cmd *Command) writeKeySpecs(out *Reply) {
	keys := cmd.docs.span()
	if keys == (span{}) {
		out.Set(0)
		return
	}
	out.Set(1)
	out.Map(3)
	out.Bulk("flags")
	cmd.writeKeyFlags(out)
	out.Bulk("begin_search")
	out.Map(2)
	out.Bulk("type")
	out.Bulk("index")
	out.Bulk("spec")
	out.Map(1)
	out.Bulk("index")
	out.Int(1)
	out.Bulk("find_keys")
	out.Map(2)
	out.Bulk("type")
	out.Bulk("range")
	out.Bulk("spec")
	out.Map(3)
	out.Bulk("lastkey")
	out.Int(int64(min(0, keys.last))) // counted from the first one, or from the end
	out.Bulk("keystep")
	out.Int(int64(keys.step))
	out.Bulk("limit")
	out.Int(0)
}

func (t *Table) commandDocs(which []*Command, out *Reply) {
	known := make([]*Command, 0, len(which))
	for _, c := range which {
		if c != nil {
			known = append(known, c)
		}
	}
	out.Map(len(known))
	for _, c := range known {
		out.Bulk(c.Name)
		c.docs.write(out)
	}
}

func (t *Table) commandGetKeys(words [][]byte, out *Reply) {
	cmd := t.listed(words[0])
	switch {
	case cmd == nil:
		out.Error("ERR Invalid command specified")
	case cmd.docs.span() == span{}:
		out.Error("ERR The command has no key arguments")
	case !fits(cmd.arity, len(words)):
		out.Error("ERR Invalid number of arguments specified for command")
	default:
		var keys []string
		for i := range (KeyPlaces{cmd.docs.span().within(len(words))}).all() {
			keys = append(keys, string(words[i]))
		}
		out.Strings(keys)
	}
}

// listed finds a command that COMMAND lists, or nil.
func (t *Table) listed(name []byte) *Command {
	if cmd := t.Lookup(name); cmd != nil || !t.lists {
		return cmd
	}
	return t.locked[lower(name)]
}
