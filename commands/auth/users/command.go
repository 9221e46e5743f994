package users

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"redlock-proxy/commands/auth/acl"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// Command returns the command ACL.
func (u *Users) Command() *command.Command {
	docs := command.DocsOf("server", "A container for Access List Control commands.", "6.0.0")
	c := command.NewRedisCommand("acl", u.subcommands().Run, docs)
	c.RequiresLogin, c.NeverForwarded = true, true
	return c
}

func (u *Users) subcommands() command.Subcommands {
	return command.Subcommands{
		"whoami":  command.Sub(2, func(c command.Call) { c.Out.WriteBulk(c.Client.User) }),
		"users":   command.Sub(2, u.listNames),
		"list":    command.Sub(2, u.list),
		"getuser": command.Sub(3, u.getUser),
		"cat":     command.Sub(-2, u.cat),
		"dryrun":  command.Sub(-4, u.dryRun),
		"load":    command.Sub(2, u.load),
		"setuser": command.Sub(-3, refuseChange),
		"deluser": command.Sub(-3, refuseChange),
		"save":    command.Sub(2, refuseChange),
		"help":    help,
	}
}

func refuseChange(c command.Call) {
	c.Out.WriteError("ERR commands cannot change users: this proxy reads them from its acl-file; " +
		"change the file, then reload it by ACL LOAD or SIGHUP")
}

func (u *Users) listNames(c command.Call) {
	var names []string
	for _, user := range u.Current().All() {
		names = append(names, user.Name)
	}
	c.Out.WriteStrings(names)
}

func (u *Users) list(c command.Call) {
	var lines []string
	for _, user := range u.Current().All() {
		lines = append(lines, user.Describe())
	}
	c.Out.WriteStrings(lines)
}

func (u *Users) getUser(c command.Call) {
	user := u.Current().Find(string(c.Args[2]))
	if user == nil {
		c.Out.WriteNull()
		return
	}
	all := user.Rules()
	selectors := []any{}
	for _, rules := range all[1:] {
		selectors = append(selectors, fieldsOf(rules))
	}
	fields := command.Fields{"flags", command.TextSet(user.Flags()), "passwords", user.Hashes()}
	c.Out.Put(append(append(fields, fieldsOf(all[0])...), "selectors", selectors))
}

func fieldsOf(rules acl.Rules) command.Fields {
	return command.Fields{"commands", rules.Commands, "keys", rules.Keys, "channels", rules.Channels}
}

func (u *Users) cat(c command.Call) {
	switch len(c.Args) {
	case 2:
		c.Out.WriteStrings(spec.CategoryNames())
	case 3:
		if names := u.catalog.Names(string(c.Args[2])); names != nil {
			c.Out.WriteStrings(names)
			return
		}
		c.Out.WriteError("ERR Unknown category '" + string(syntax.Excerpt(c.Args[2])) + "'")
	default:
		c.Out.WriteError("ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.")
	}
}

func (u *Users) dryRun(c command.Call) {
	user, words := u.Current().Find(string(c.Args[2])), c.Args[3:]
	cmd := spec.Find(words[0])
	switch {
	case user == nil:
		c.Out.WriteError("ERR User '" + string(syntax.Excerpt(c.Args[2])) + "' not found")
	case !u.catalog.Knows(words):
		c.Out.WriteError("ERR Command '" + string(syntax.Excerpt(words[0])) + "' not found")
	case cmd != nil && cmd.Arity != 0 && !syntax.FitsArity(cmd.Arity, len(words)):
		c.Out.WriteError(syntax.WrongArity(cmd.Name))
	default:
		if text := user.Check(words).Describe(); text != "" {
			c.Out.WriteBulk(text)
			return
		}
		c.Out.WriteStatus("OK")
	}
}

func (u *Users) load(c command.Call) {
	if err := u.Reload(); err != nil {
		u.log.Error("ACL LOAD failed: the users are unchanged", "cause", err)
		c.Out.WriteError("ERR " + loadFailure(err))
		return
	}
	c.Out.WriteStatus("OK")
}

// loadFailure returns the text of the error of ACL LOAD, in Redis' wording.
func loadFailure(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok && pathErr.Op == "open" {
		cause := pathErr.Err.Error() // as strerror, but not capitalized
		return fmt.Sprintf("Error loading ACLs, opening file '%s': %s", pathErr.Path,
			strings.ToUpper(cause[:1])+cause[1:])
	}
	return strings.TrimSuffix(err.Error(), ".") +
		". WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
}

var help = command.Help(
	"ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
	"CAT [<category>]", "    List all commands that belong to <category>, or all command categories",
	"    when no category is specified.",
	"DRYRUN <username> <command> [<arg> ...]",
	"    Returns whether the user can execute the given command without executing the command.",
	"GETUSER <username>", "    Get the user's details.",
	"LIST", "    Show users details in config file format.",
	"LOAD", "    Reload users from the ACL file.",
	"USERS", "    List all the registered usernames.",
	"WHOAMI", "    Return the current connection username.",
	"HELP", "    Prints this help.",
)
