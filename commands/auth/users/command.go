package users

import (
	"redlock-proxy/commands/auth/acl"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// Command is ACL.
func (u *Users) Command() *command.Command {
	c := command.OfRedis("acl", u.acl, command.DocsOf("server", "A container for Access List Control commands.", "6.0.0"))
	c.Guarded, c.Local = true, true
	return c
}

// subcommands are those of ACL; the arity counts all words. It is never changed.
var subcommands = map[string]struct {
	arity int
	do    func(u *Users, c command.Call)
}{
	"whoami":  {2, func(_ *Users, c command.Call) { c.Out.Bulk(c.Client.User) }},
	"users":   {2, (*Users).names},
	"list":    {2, (*Users).list},
	"getuser": {3, (*Users).getUser},
	"cat":     {-2, (*Users).cat},
	"dryrun":  {-4, (*Users).dryRun},
	"load":    {2, (*Users).load},
	"setuser": {-3, fileRules},
	"deluser": {-3, fileRules},
	"save":    {2, fileRules},
	"help":    {2, help},
}

func (u *Users) acl(c command.Call) {
	sub := syntax.Lower(c.Args[1])
	run, known := subcommands[sub]
	switch {
	case !known:
		c.Out.Error(syntax.UnknownSubcommand("ACL", c.Args[1]))
	case !syntax.Fits(run.arity, len(c.Args)):
		c.Out.Error(syntax.WrongArity("acl|" + sub))
	default:
		run.do(u, c)
	}
}

func fileRules(_ *Users, c command.Call) {
	c.Out.Error("ERR the users of this proxy are those of its acl-file: change that, then read it again by ACL LOAD or SIGHUP")
}

func (u *Users) names(c command.Call) {
	var names []string
	for _, user := range u.Now().All() {
		names = append(names, user.Name)
	}
	c.Out.Strings(names)
}

func (u *Users) list(c command.Call) {
	var lines []string
	for _, user := range u.Now().All() {
		lines = append(lines, user.Describe())
	}
	c.Out.Strings(lines)
}

func (u *Users) getUser(c command.Call) {
	user := u.Now().Find(string(c.Args[2]))
	if user == nil {
		c.Out.Null()
		return
	}
	all := user.Rules()
	c.Out.Map(6)
	c.Out.Bulk("flags")
	flags := user.Flags()
	c.Out.Set(len(flags))
	for _, flag := range flags {
		c.Out.Bulk(flag)
	}
	c.Out.Bulk("passwords")
	c.Out.Strings(user.Hashes())
	writeRules(c.Out, all[0])
	c.Out.Bulk("selectors")
	c.Out.Array(len(all) - 1)
	for _, rules := range all[1:] {
		c.Out.Map(3)
		writeRules(c.Out, rules)
	}
}

func writeRules(out *command.Reply, rules acl.Rules) {
	out.Bulk("commands")
	out.Bulk(rules.Commands)
	out.Bulk("keys")
	out.Bulk(rules.Keys)
	out.Bulk("channels")
	out.Bulk(rules.Channels)
}

func (u *Users) cat(c command.Call) {
	switch len(c.Args) {
	case 2:
		c.Out.Strings(spec.CategoryNames())
	case 3:
		if names := u.catalog.Names(string(c.Args[2])); names != nil {
			c.Out.Strings(names)
			return
		}
		c.Out.Error("ERR Unknown category '" + string(syntax.Shown(c.Args[2])) + "'")
	default:
		c.Out.Error("ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.")
	}
}

func (u *Users) dryRun(c command.Call) {
	user, words := u.Now().Find(string(c.Args[2])), c.Args[3:]
	known := spec.Find(words[0])
	switch {
	case user == nil:
		c.Out.Error("ERR User '" + string(syntax.Shown(c.Args[2])) + "' not found")
	case !u.catalog.Knows(words):
		c.Out.Error("ERR Command '" + string(syntax.Shown(words[0])) + "' not found")
	case known != nil && known.Arity != 0 && !syntax.Fits(known.Arity, len(words)):
		c.Out.Error(syntax.WrongArity(known.Name))
	default:
		if text := user.Check(words).Describe(); text != "" {
			c.Out.Bulk(text)
			return
		}
		c.Out.Status("OK")
	}
}

func (u *Users) load(c command.Call) {
	if err := u.Reload(); err != nil {
		u.log.Error("ACL LOAD: the users stay as they were", "cause", err)
		c.Out.Error("ERR " + err.Error() + " WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
		return
	}
	c.Out.Status("OK")
}

func help(_ *Users, c command.Call) {
	c.Out.Statuses([]string{
		"ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CAT [<category>]", "    List all commands that belong to <category>, or all command categories", "    when no category is specified.",
		"DRYRUN <username> <command> [<arg> ...]", "    Returns whether the user can execute the given command without executing the command.",
		"GETUSER <username>", "    Get the user's details.",
		"LIST", "    Show users details in config file format.",
		"LOAD", "    Reload users from the ACL file.",
		"USERS", "    List all the registered usernames.",
		"WHOAMI", "    Return the current connection username.",
		"HELP", "    Prints this help.",
	})
}
