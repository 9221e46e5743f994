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
		found[i] = t.Lookup(name)
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
	flag, key := "loading", int64(0)
	if cmd.docs.keyed {
		flag, key = "write", 1
	}
	out.Array(10)
	out.Bulk(cmd.Name)
	out.Int(int64(cmd.arity))
	out.Set(1)
	out.Status(flag)
	out.Int(key)
	out.Int(key)
	out.Int(key)
	out.Set(1)
	out.Status(cmd.category())
	out.Set(0) // tips
	cmd.writeKeySpecs(out)
	out.Set(0) // subcommands; Redis has an array only where there are some
}

// category is the command's category in Redis' ACL.
func (cmd *Command) category() string {
	if cmd.docs.keyed {
		return "@write"
	}
	return "@connection"
}

// writeKeyFlags says what is done with a key.
func writeKeyFlags(out *Reply) {
	out.Set(2)
	out.Status("RW")
	out.Status("update")
}

// writeKeySpecs says: one key, at index 1, that the command writes.
func (cmd *Command) writeKeySpecs(out *Reply) {
	if !cmd.docs.keyed {
		out.Set(0)
		return
	}
	out.Set(1)
	out.Map(3)
	out.Bulk("flags")
	writeKeyFlags(out)
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
	out.Int(0)
	out.Bulk("keystep")
	out.Int(1)
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
	cmd := t.Lookup(words[0])
	switch {
	case cmd == nil:
		out.Error("ERR Invalid command specified")
	case !cmd.docs.keyed:
		out.Error("ERR The command has no key arguments")
	case !fits(cmd.arity, len(words)):
		out.Error("ERR Invalid number of arguments specified for command")
	default:
		out.Strings([]string{string(words[1])})
	}
}
