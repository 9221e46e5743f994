package commands

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
)

// NewRelayTable makes the table of a proxy with an upstream: the lock commands,
// and those in whose replies they are spliced in beside the upstream's own.
func NewRelayTable(opts Options) *Table {
	asking := []Command{
		{Name: "command", arity: -1, asks: true, run: (*Table).relayCommand},
		{Name: "info", arity: -1, asks: true, run: (*Table).relayInfo},
	}
	if len(opts.LockKeys) > 0 {
		asking = append(asking, relayScriptCommand())
	}
	return newTable(opts, lockCommands(), proxyCommands(), asking)
}

// Guarded reports whether a client must have logged in at an upstream that demands
// it before it may run the command.
func (cmd *Command) Guarded() bool { return cmd.guarded || cmd.isOurs() }

// Asks reports whether the command's answer is made of the upstream's.
func (cmd *Command) Asks() bool { return cmd.asks }

// isOurs reports whether the upstream does not know the command.
func (cmd *Command) isOurs() bool { return cmd.docs.group == proxyGroup }

// ours are the commands that the upstream does not know.
func (t *Table) ours() []*Command {
	var own []*Command
	for _, c := range t.ordered {
		if c.isOurs() {
			own = append(own, c)
		}
	}
	return own
}

// isOurs finds one of ours by name, or nil.
func (t *Table) isOurs(name []byte) *Command {
	if c := t.Lookup(name); c != nil && c.isOurs() {
		return c
	}
	return nil
}

// ask gets the upstream's reply, or answers the error. What is no success is
// passed on as it is.
func ask(ctx context.Context, c *Client, out *Reply) ([]byte, bool) {
	reply, err := c.Ask(ctx)
	if err != nil {
		out.Error(errorText(err))
		return nil, false
	}
	if len(reply) == 0 || reply[0] == '-' {
		out.Raw(reply)
		return nil, false
	}
	return reply, true
}

// relayInfo is INFO with our section behind the upstream's, whose numbers stay
// untouched.
func (t *Table) relayInfo(ctx context.Context, c *Client, args [][]byte, out *Reply) {
	reply, ok := ask(ctx, c, out)
	if !ok {
		return
	}
	if !infoWanted(args[1:], "Redlock") {
		out.Raw(reply)
		return
	}
	own := "# Redlock\r\n" + joinLines(t.infoRedlock())
	out.Raw(appendText(reply, own))
}

// relayCommand is COMMAND and its subcommands, with ours.
func (t *Table) relayCommand(ctx context.Context, c *Client, args [][]byte, out *Reply) {
	if len(args) > 2 && t.isOurs(args[2]) != nil {
		switch lower(args[1]) {
		case "getkeys":
			t.relayGetKeys(ctx, c, out, func(own *Reply) { t.commandGetKeys(args[2:], own) })
			return
		case "getkeysandflags":
			t.relayGetKeys(ctx, c, out, func(own *Reply) { t.commandGetKeysAndFlags(args[2:], own) })
			return
		}
	}
	reply, ok := ask(ctx, c, out)
	if !ok {
		return
	}
	if len(args) == 1 {
		out.Raw(t.spliceEntries(reply, out.Proto))
		return
	}
	switch lower(args[1]) {
	case "count":
		out.Raw(t.spliceCount(reply))
	case "list":
		out.Raw(t.spliceList(reply, args[2:]))
	case "info":
		out.Raw(t.spliceInfo(reply, args[2:], out.Proto))
	case "docs":
		out.Raw(t.spliceDocs(reply, args[2:], out.Proto))
	default:
		out.Raw(reply)
	}
}

// relayGetKeys gives our answer where the upstream would answer, but for not knowing
// the command.
func (t *Table) relayGetKeys(ctx context.Context, c *Client, out *Reply, ours func(own *Reply)) {
	reply, err := c.Ask(ctx)
	switch {
	case err != nil:
		out.Error(errorText(err))
	case bytes.HasPrefix(reply, []byte("-ERR Invalid command specified")):
		own := Reply{Proto: out.Proto}
		ours(&own)
		out.Raw(own.Bytes)
	default:
		out.Raw(reply)
	}
}

// commandGetKeysAndFlags is COMMAND GETKEYSANDFLAGS for our commands, which have one
// key or none.
func (t *Table) commandGetKeysAndFlags(words [][]byte, out *Reply) {
	t.commandGetKeys(words, out)
	if out.Bytes[0] == '-' {
		return
	}
	out.Bytes = out.Bytes[:0]
	out.Array(1)
	out.Array(2)
	out.Bulk(string(words[1]))
	t.Lookup(words[0]).writeKeyFlags(out)
}

func (t *Table) spliceCount(reply []byte) []byte {
	n, err := strconv.Atoi(string(bytes.TrimSpace(reply[1:])))
	if err != nil {
		return reply
	}
	return fmt.Appendf(nil, ":%d\r\n", n+len(t.ours()))
}

// spliceEntries appends our entries to those of a plain COMMAND.
func (t *Table) spliceEntries(reply []byte, proto int) []byte {
	more := Reply{Proto: proto}
	for _, c := range t.ours() {
		c.writeInfo(&more)
	}
	return appendElements(reply, len(t.ours()), more.Bytes)
}

// spliceList appends our names to COMMAND LIST, as far as its filter lets them
// through.
func (t *Table) spliceList(reply []byte, filter [][]byte) []byte {
	more, n := Reply{}, 0
	for _, c := range t.ours() {
		if listed(c, filter) {
			more.Bulk(c.Name)
			n++
		}
	}
	return appendElements(reply, n, more.Bytes)
}

func listed(c *Command, filter [][]byte) bool {
	switch {
	case len(filter) == 0:
		return true
	case len(filter) == 3 && lower(filter[1]) == "pattern":
		return matchGlob(lower(filter[2]), c.Name)
	case len(filter) == 3 && lower(filter[1]) == "aclcat":
		return "@"+lower(filter[2]) == c.category()
	}
	return false
}

// spliceInfo puts our entries in the places of COMMAND INFO where the upstream
// knew nothing.
func (t *Table) spliceInfo(reply []byte, names [][]byte, proto int) []byte {
	if len(names) == 0 {
		return t.spliceEntries(reply, proto)
	}
	head, count, ok := header(reply)
	if !ok || count != len(names) {
		return reply
	}
	out := Reply{Proto: proto, Bytes: bytes.Clone(reply[:head])}
	rest := reply[head:]
	for _, name := range names {
		n := elementSize(rest)
		if n == 0 {
			return reply
		}
		if c := t.isOurs(name); c != nil {
			c.writeInfo(&out)
		} else {
			out.Raw(rest[:n])
		}
		rest = rest[n:]
	}
	return out.Bytes
}

// spliceDocs appends our docs, those that were asked for.
func (t *Table) spliceDocs(reply []byte, names [][]byte, proto int) []byte {
	which := t.ours()
	if len(names) > 0 {
		which = which[:0:0]
		for _, name := range names {
			if c := t.isOurs(name); c != nil {
				which = append(which, c)
			}
		}
	}
	more := Reply{Proto: proto}
	for _, c := range which {
		more.Bulk(c.Name)
		c.docs.write(&more)
	}
	n := len(which)
	if proto != 3 {
		n *= 2
	}
	if !namesFirst(reply) {
		none := Reply{Proto: proto}
		none.Map(0)
		reply = none.Bytes
	}
	return appendElements(reply, n, more.Bytes)
}

// namesFirst reports whether a reply to COMMAND DOCS begins with a name, or is empty.
// A server that does not know DOCS and answers with its table would make redis-cli
// abort.
func namesFirst(reply []byte) bool {
	head, n, ok := header(reply)
	return !ok || n == 0 || reply[head] == '$' || reply[head] == '+'
}
