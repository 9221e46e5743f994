package keyspace

import "redlock-proxy/commands/spec"

// find is the command of that name, in lower case, or nil.
func find(name string) *command { return byName[name] }

// byName is never changed.
var byName = index(commands())

func index(all []command) map[string]*command {
	byName := make(map[string]*command, len(all))
	for _, c := range all {
		byName[c.spec.Name] = &c
	}
	return byName
}

// the is the command of Redis with that name.
func the(name string) *spec.Command { return spec.Find([]byte(name)) }

// commands are all that a Space can carry out.
func commands() []command {
	return []command{
		{the("get"), call.get, docs{"string", "1.0.0", "Returns the value that a majority holds under a lock key."}},
		{the("strlen"), call.strlen, docs{"string", "2.2.0", "Returns the length of the value of a lock key."}},
		{the("getrange"), call.getRange, docs{"string", "2.4.0", "Returns a part of the value of a lock key."}},
		{the("substr"), call.getRange, docs{"string", "1.0.0", "Returns a part of the value of a lock key."}},
		{the("mget"), call.mget, docs{"string", "1.0.0", "Returns the values of lock keys."}},
		{the("exists"), call.count, docs{"generic", "1.0.0", "Counts which of the lock keys are held."}},
		{the("touch"), call.count, docs{"generic", "3.2.1", "Counts which of the lock keys are held."}},
		{the("type"), call.kind, docs{"generic", "1.0.0", "Returns string for a held lock key, else none."}},
		{the("ttl"), call.left, docs{"generic", "1.0.0", "Returns the time that a majority still grants, in seconds."}},
		{the("pttl"), call.left, docs{"generic", "2.6.0", "Returns the time that a majority still grants, in milliseconds."}},
		{the("expiretime"), call.left, docs{"generic", "7.0.0", "Returns the end of a lock key as a Unix time in seconds."}},
		{the("pexpiretime"), call.left, docs{"generic", "7.0.0", "Returns the end of a lock key as a Unix time in milliseconds."}},

		{the("set"), call.set, docs{"string", "1.0.0", "Sets a lock key; with NX takes it if nobody holds it."}},
		{the("setnx"), call.setnx, docs{"string", "1.0.0", "Takes a lock key if nobody holds it."}},
		{the("setex"), call.setex, docs{"string", "2.0.0", "Sets a lock key for a time in seconds, whoever holds it."}},
		{the("psetex"), call.setex, docs{"string", "2.6.0", "Sets a lock key for a time in milliseconds, whoever holds it."}},
		{the("getset"), call.getset, docs{"string", "1.0.0", "Sets a lock key and returns the value that it had."}},
		{the("getdel"), call.getdel, docs{"string", "6.2.0", "Returns the value of a lock key and removes it."}},
		{the("getex"), call.getex, docs{"string", "6.2.0", "Returns the value of a lock key and sets its time."}},
		{the("mset"), call.mset, docs{"string", "1.0.1", "Sets lock keys, whoever holds them."}},
		{the("msetnx"), call.mset, docs{"string", "1.0.1", "Takes lock keys if none of them is held."}},
		{the("append"), call.append, docs{"string", "2.0.0", "Appends a text to the value of a lock key."}},
		{the("setrange"), call.setRange, docs{"string", "2.2.0", "Overwrites a part of the value of a lock key."}},
		{the("incr"), call.incr, docs{"string", "1.0.0", "Adds one to the number in a lock key."}},
		{the("decr"), call.incr, docs{"string", "1.0.0", "Takes one from the number in a lock key."}},
		{the("incrby"), call.incr, docs{"string", "1.0.0", "Adds a number to the one in a lock key."}},
		{the("decrby"), call.incr, docs{"string", "1.0.0", "Takes a number from the one in a lock key."}},

		{the("del"), call.del, docs{"generic", "1.0.0", "Removes lock keys, whoever holds them."}},
		{the("unlink"), call.del, docs{"generic", "4.0.0", "Removes lock keys, whoever holds them."}},
		{the("delex"), call.delex, docs{"string", "8.4.0", "Removes a lock key if it holds, or does not hold, a value."}},
		{the("delifeq"), call.delifeq, docs{"string", "9.0.0", "Removes a lock key if it holds a value."}},
		{the("expire"), call.expireIn, docs{"generic", "1.0.0", "Gives a held lock key a time in seconds."}},
		{the("pexpire"), call.expireIn, docs{"generic", "2.6.0", "Gives a held lock key a time in milliseconds."}},
		{the("expireat"), call.expireIn, docs{"generic", "1.2.0", "Gives a held lock key an end as a Unix time in seconds."}},
		{the("pexpireat"), call.expireIn, docs{"generic", "2.6.0", "Gives a held lock key an end as a Unix time in milliseconds."}},
		{the("persist"), call.persist, docs{"generic", "2.2.0", "Takes the time of a lock key away."}},
	}
}
