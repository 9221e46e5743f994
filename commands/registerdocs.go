package commands

import "redlock-proxy/commands/register"

// registerDocs are what a proxy without an upstream says of its ordinary commands:
// group, version of Redis and summary.
func registerDocs() map[string][3]string {
	return map[string][3]string{
		"append":      {"string", "2.0.0", "Appends a text to the value of a lock key."},
		"decr":        {"string", "1.0.0", "Takes one from the number in a lock key."},
		"decrby":      {"string", "1.0.0", "Takes a number from the one in a lock key."},
		"del":         {"generic", "1.0.0", "Removes lock keys, whoever holds them."},
		"delex":       {"string", "8.4.0", "Removes a lock key if it holds, or does not hold, a value."},
		"delifeq":     {"string", "9.0.0", "Removes a lock key if it holds a value."},
		"exists":      {"generic", "1.0.0", "Counts which of the lock keys are held."},
		"expire":      {"generic", "1.0.0", "Gives a held lock key a time in seconds."},
		"expireat":    {"generic", "1.2.0", "Gives a held lock key an end as a Unix time in seconds."},
		"expiretime":  {"generic", "7.0.0", "Returns the end of a lock key as a Unix time in seconds."},
		"get":         {"string", "1.0.0", "Returns the value that a majority holds under a lock key."},
		"getdel":      {"string", "6.2.0", "Returns the value of a lock key and removes it."},
		"getex":       {"string", "6.2.0", "Returns the value of a lock key and sets its time."},
		"getrange":    {"string", "2.4.0", "Returns a part of the value of a lock key."},
		"getset":      {"string", "1.0.0", "Sets a lock key and returns the value that it had."},
		"incr":        {"string", "1.0.0", "Adds one to the number in a lock key."},
		"incrby":      {"string", "1.0.0", "Adds a number to the one in a lock key."},
		"mget":        {"string", "1.0.0", "Returns the values of lock keys."},
		"mset":        {"string", "1.0.1", "Sets lock keys, whoever holds them."},
		"msetnx":      {"string", "1.0.1", "Takes lock keys if none of them is held."},
		"persist":     {"generic", "2.2.0", "Takes the time of a lock key away."},
		"pexpire":     {"generic", "2.6.0", "Gives a held lock key a time in milliseconds."},
		"pexpireat":   {"generic", "2.6.0", "Gives a held lock key an end as a Unix time in milliseconds."},
		"pexpiretime": {"generic", "7.0.0", "Returns the end of a lock key as a Unix time in milliseconds."},
		"psetex":      {"string", "2.6.0", "Sets a lock key for a time in milliseconds, whoever holds it."},
		"pttl":        {"generic", "2.6.0", "Returns the time that a majority still grants, in milliseconds."},
		"set":         {"string", "1.0.0", "Sets a lock key; with NX takes it if nobody holds it."},
		"setex":       {"string", "2.0.0", "Sets a lock key for a time in seconds, whoever holds it."},
		"setnx":       {"string", "1.0.0", "Takes a lock key if nobody holds it."},
		"setrange":    {"string", "2.2.0", "Overwrites a part of the value of a lock key."},
		"strlen":      {"string", "2.2.0", "Returns the length of the value of a lock key."},
		"substr":      {"string", "1.0.0", "Returns a part of the value of a lock key."},
		"touch":       {"generic", "3.2.1", "Counts which of the lock keys are held."},
		"ttl":         {"generic", "1.0.0", "Returns the time that a majority still grants, in seconds."},
		"type":        {"generic", "1.0.0", "Returns string for a held lock key, else none."},
		"unlink":      {"generic", "4.0.0", "Removes lock keys, whoever holds them."},

		"eval":       {"scripting", "2.6.0", "Runs a script on lock keys."},
		"eval_ro":    {"scripting", "7.0.0", "Runs a script that only reads lock keys."},
		"evalsha":    {"scripting", "2.6.0", "Runs a script on lock keys, given by its SHA-1."},
		"evalsha_ro": {"scripting", "7.0.0", "Runs a script that only reads lock keys, given by its SHA-1."},
		"script":     {"scripting", "2.6.0", "A container for the commands that keep scripts."},
	}
}

// registerCommands are the ordinary commands that run on lock keys, and those of
// scripts, by name.
func registerCommands() map[string]*Command {
	locked := map[string]*Command{}
	for name, d := range registerDocs() {
		cmd := &Command{Name: name, guarded: true, docs: docsOf(d[0], d[2], d[1])}
		switch {
		case register.Supported(name):
			cmd.arity, cmd.run = register.Arity(name), (*Table).cmdRegister
			cmd.docs.keys, cmd.docs.reads = keyRule([]byte(name)).span, !register.Writes(name)
		case name == "script":
			cmd.arity, cmd.run = -2, (*Table).cmdScript
		default:
			cmd.arity, cmd.run = -3, (*Table).cmdEval
		}
		locked[name] = cmd
	}
	return locked
}
