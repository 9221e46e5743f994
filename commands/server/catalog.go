package server

import (
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// catalog holds the commands that COMMAND lists. It is safe for concurrent use after newCatalog.
type catalog struct {
	commands []*command.Command
	byName   *syntax.Names[*command.Command]
}

// newCatalog returns a catalog of commands in their order.
func newCatalog(all []*command.Command) catalog {
	byName := map[string]*command.Command{}
	for _, cmd := range all {
		byName[cmd.Name] = cmd
	}
	return catalog{all, syntax.NewNames(byName)}
}

// find returns a command by name, or nil.
func (l *catalog) find(name []byte) *command.Command { return l.byName.Find(name) }

// command implements COMMAND with its subcommands.
func (l *catalog) command(c command.Call) {
	if len(c.Args) == 1 {
		l.info(l.commands, c.Out)
		return
	}
	rest := c.Args[2:]
	switch sub := syntax.Lower(c.Args[1]); {
	case sub == "count" && len(rest) > 0, sub == "getkeys" && len(rest) == 0:
		c.Out.WriteError(syntax.WrongArity("command|" + sub))
	case sub == "count":
		c.Out.WriteInt(int64(len(l.commands)))
	case sub == "list":
		l.list(rest, c.Out)
	case sub == "info":
		l.info(l.findAll(rest), c.Out)
	case sub == "docs":
		l.docs(l.findAll(rest), c.Out)
	case sub == "getkeys":
		l.getKeys(rest, c.Out)
	default:
		c.Out.WriteError(syntax.UnknownSubcommand("COMMAND", c.Args[1]))
	}
}

// findAll returns the commands with these names, with nil for an unknown name. Without names, it
// returns all commands.
func (l *catalog) findAll(names [][]byte) []*command.Command {
	if len(names) == 0 {
		return l.commands
	}
	found := make([]*command.Command, len(names))
	for i, name := range names {
		found[i] = l.find(name)
	}
	return found
}

// list implements COMMAND LIST, without FILTERBY.
func (l *catalog) list(options [][]byte, out *command.Reply) {
	if len(options) > 0 {
		out.WriteError(syntax.ErrSyntax)
		return
	}
	out.WriteArray(len(l.commands))
	for _, c := range l.commands {
		out.WriteBulk(c.Name)
	}
}

func (l *catalog) info(commands []*command.Command, out *command.Reply) {
	out.WriteArray(len(commands))
	for _, c := range commands {
		if c == nil {
			out.WriteNull()
			continue
		}
		c.WriteInfo(out)
	}
}

func (l *catalog) docs(commands []*command.Command, out *command.Reply) {
	known := make([]*command.Command, 0, len(commands))
	for _, c := range commands {
		if c != nil {
			known = append(known, c)
		}
	}
	out.WriteMap(len(known))
	for _, c := range known {
		out.WriteBulk(c.Name)
		c.Docs.Write(out)
	}
}

// getKeys implements COMMAND GETKEYS.
func (l *catalog) getKeys(words [][]byte, out *command.Reply) {
	if cmd, names := l.keysOf(words, out); cmd != nil {
		out.WriteStrings(names)
	}
}

// keysOf returns a command of the proxy and the keys of a request. If the request has no keys, it
// writes the error of COMMAND GETKEYS to out, and returns nil.
func (l *catalog) keysOf(words [][]byte, out *command.Reply) (*command.Command, []string) {
	cmd := l.find(words[0])
	switch {
	case cmd == nil:
		out.WriteError("ERR Invalid command specified")
	case !cmd.HasKeys():
		out.WriteError("ERR The command has no key arguments")
	case !syntax.FitsArity(cmd.Arity, len(words)):
		out.WriteError("ERR Invalid number of arguments specified for command")
	default:
		var names []string
		for _, i := range slices.Sorted(cmd.Places(words).All()) {
			names = append(names, string(words[i]))
		}
		if len(names) > 0 {
			return cmd, names
		}
		out.WriteError("ERR Invalid arguments specified for command")
	}
	return nil, nil
}
