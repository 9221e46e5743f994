package command

import (
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// Subcommands holds the subcommands of a command, by name in lower case. It is immutable.
type Subcommands map[string]Subcommand

// Subcommand holds the arity and the function of a subcommand.
type Subcommand struct {
	arity int
	run   func(Call)
}

// Sub returns a subcommand. arity is the number of words, including the names of the command and
// the subcommand. If it is negative, -arity is the minimum.
func Sub(arity int, run func(Call)) Subcommand { return Subcommand{arity, run} }

// Run runs the subcommand that a call names.
func (s Subcommands) Run(c Call) {
	name, subName := syntax.Lower(c.Args[0]), syntax.Lower(c.Args[1])
	sub, ok := s[subName]
	switch {
	case !ok:
		c.Out.WriteError(syntax.UnknownSubcommand(strings.ToUpper(name), c.Args[1]))
	case !syntax.FitsArity(sub.arity, len(c.Args)):
		c.Out.WriteError(syntax.WrongArity(name + "|" + subName))
	default:
		sub.run(c)
	}
}

// Help returns the subcommand HELP, which replies with lines.
func Help(lines ...string) Subcommand {
	return Sub(2, func(c Call) { c.Out.WriteStatuses(lines) })
}
