package server

import (
	"bytes"
	"slices"

	"github.com/tidwall/redcon"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
)

// ownCommands returns the commands that Redis does not have.
func (l *catalog) ownCommands() []*command.Command {
	var own []*command.Command
	for _, c := range l.commands {
		if c.IsOwn() {
			own = append(own, c)
		}
	}
	return own
}

// findOwn returns the proxy's own command with this name, or nil.
func (l *catalog) findOwn(name []byte) *command.Command {
	if c := l.find(name); c != nil && c.IsOwn() {
		return c
	}
	return nil
}

// mergedCommand implements COMMAND and its subcommands if there is an upstream. It adds the proxy's
// own commands to the upstream's reply.
func (l *catalog) mergedCommand(c command.Call) {
	if len(c.Args) > 2 && l.findOwn(c.Args[2]) != nil {
		switch syntax.Lower(c.Args[1]) {
		case "getkeys":
			mergedGetKeys(c, func(ownReply *command.Reply) { l.getKeys(c.Args[2:], ownReply) })
			return
		case "getkeysandflags":
			mergedGetKeys(c, func(own *command.Reply) { l.getKeysAndFlags(c.Args[2:], own) })
			return
		}
	}
	reply, ok := c.AskUpstream()
	if !ok {
		return
	}
	if len(c.Args) == 1 {
		c.Out.WriteRaw(l.mergeEntries(reply, c.Out.Proto))
		return
	}
	switch syntax.Lower(c.Args[1]) {
	case "count":
		c.Out.WriteRaw(l.mergeCount(reply))
	case "list":
		c.Out.WriteRaw(l.mergeList(reply, c.Args[2:]))
	case "info":
		c.Out.WriteRaw(l.mergeInfo(reply, c.Args[2:], c.Out.Proto))
	case "docs":
		c.Out.WriteRaw(l.mergeDocs(reply, c.Args[2:], c.Out.Proto))
	default:
		c.Out.WriteRaw(reply)
	}
}

// mergedGetKeys writes the upstream's reply, or the proxy's if the upstream does not know the
// command.
func mergedGetKeys(c command.Call, answer func(ownReply *command.Reply)) {
	reply, err := c.Client.Ask(c.Ctx)
	switch {
	case err != nil:
		c.Out.Fail(err)
	case bytes.HasPrefix(reply, []byte("-ERR Invalid command specified")):
		own := command.Reply{Proto: c.Out.Proto}
		answer(&own)
		c.Out.WriteRaw(own.Bytes)
	default:
		c.Out.WriteRaw(reply)
	}
}

// getKeysAndFlags implements COMMAND GETKEYSANDFLAGS for the proxy's own commands.
func (l *catalog) getKeysAndFlags(words [][]byte, out *command.Reply) {
	cmd, names := l.keysOf(words, out)
	if cmd == nil {
		return
	}
	out.WriteArray(len(names))
	for _, name := range names {
		out.WriteArray(2)
		out.WriteBulk(name)
		cmd.WriteKeyFlags(out)
	}
}

func (l *catalog) mergeCount(reply []byte) []byte {
	n, _, ok := resp.Header(reply)
	if !ok {
		return reply
	}
	return redcon.AppendInt(nil, int64(n+len(l.ownCommands())))
}

// mergeEntries appends the proxy's entries to a reply to COMMAND.
func (l *catalog) mergeEntries(reply []byte, proto int) []byte {
	own := command.Reply{Proto: proto}
	for _, c := range l.ownCommands() {
		c.WriteInfo(&own)
	}
	return appendElements(reply, len(l.ownCommands()), own.Bytes)
}

// mergeList appends the proxy's names that pass the filter to a reply to COMMAND LIST.
func (l *catalog) mergeList(reply []byte, filter [][]byte) []byte {
	own, n, passes := command.Reply{}, 0, compileFilter(filter)
	for _, c := range l.ownCommands() {
		if passes(c) {
			own.WriteBulk(c.Name)
			n++
		}
	}
	return appendElements(reply, n, own.Bytes)
}

// compileFilter returns the function that reports whether a command passes a filter of COMMAND
// LIST.
func compileFilter(filter [][]byte) func(*command.Command) bool {
	switch {
	case len(filter) == 0:
		return func(*command.Command) bool { return true }
	case len(filter) == 3 && syntax.Lower(filter[1]) == "pattern":
		pattern := keys.Compile(syntax.Lower(filter[2]))
		return func(c *command.Command) bool {
			matches, _ := pattern.Match(c.Name) // a short name is never too complex
			return matches
		}
	case len(filter) == 3 && syntax.Lower(filter[1]) == "aclcat":
		category := "@" + syntax.Lower(filter[2])
		return func(c *command.Command) bool { return slices.Contains(c.Categories().Names(), category) }
	}
	return func(*command.Command) bool { return false }
}

// mergeInfo replaces the nulls of the proxy's own commands in a reply to COMMAND INFO.
func (l *catalog) mergeInfo(reply []byte, names [][]byte, proto int) []byte {
	if len(names) == 0 {
		return l.mergeEntries(reply, proto)
	}
	count, rest, ok := resp.Header(reply)
	if !ok || count != len(names) {
		return reply
	}
	out := command.Reply{Proto: proto, Bytes: bytes.Clone(reply[:len(reply)-len(rest)])}
	for _, name := range names {
		n := resp.WholeReplyLen(rest)
		if n == 0 {
			return reply
		}
		if c := l.findOwn(name); c != nil {
			c.WriteInfo(&out)
		} else {
			out.WriteRaw(rest[:n])
		}
		rest = rest[n:]
	}
	return out.Bytes
}

// mergeDocs appends the requested documentation of the proxy's own commands.
func (l *catalog) mergeDocs(reply []byte, names [][]byte, proto int) []byte {
	commands := l.ownCommands()
	if len(names) > 0 {
		commands = commands[:0:0]
		for _, name := range names {
			if c := l.findOwn(name); c != nil {
				commands = append(commands, c)
			}
		}
	}
	own := command.Reply{Proto: proto}
	for _, c := range commands {
		own.WriteBulk(c.Name)
		c.Docs.Write(&own)
	}
	n := len(commands)
	if proto != 3 {
		n *= 2
	}
	if !isDocsReply(reply) {
		empty := command.Reply{Proto: proto}
		empty.WriteMap(0)
		reply = empty.Bytes
	}
	return appendElements(reply, n, own.Bytes)
}

// isDocsReply reports whether a reply to COMMAND DOCS begins with a name, or is empty. A server
// that does not know DOCS replies with its table of commands, which makes redis-cli abort.
func isDocsReply(reply []byte) bool {
	n, rest, ok := resp.Header(reply)
	return !ok || n == 0 || rest[0] == '$' || rest[0] == '+'
}
