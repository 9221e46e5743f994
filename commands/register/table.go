package register

// find is the command of that name, in lower case, or nil.
func find(name string) *command { return byName[name] }

// byName is never changed.
var byName = index(commands())

func index(all []command) map[string]*command {
	byName := make(map[string]*command, len(all))
	for _, c := range all {
		byName[c.name] = &c
	}
	return byName
}

// commands are all that a Space can carry out.
func commands() []command {
	const read, write = false, true
	return []command{
		{"get", 2, 1, 1, read, call.get},
		{"strlen", 2, 1, 1, read, call.strlen},
		{"getrange", 4, 1, 1, read, call.getRange},
		{"substr", 4, 1, 1, read, call.getRange},
		{"mget", -2, -1, 1, read, call.mget},
		{"exists", -2, -1, 1, read, call.count},
		{"touch", -2, -1, 1, read, call.count},
		{"type", 2, 1, 1, read, call.kind},
		{"ttl", 2, 1, 1, read, call.left},
		{"pttl", 2, 1, 1, read, call.left},
		{"expiretime", 2, 1, 1, read, call.left},
		{"pexpiretime", 2, 1, 1, read, call.left},

		{"set", -3, 1, 1, write, call.set},
		{"setnx", 3, 1, 1, write, call.setnx},
		{"setex", 4, 1, 1, write, call.setex},
		{"psetex", 4, 1, 1, write, call.setex},
		{"getset", 3, 1, 1, write, call.getset},
		{"getdel", 2, 1, 1, write, call.getdel},
		{"getex", -2, 1, 1, write, call.getex},
		{"mset", -3, -1, 2, write, call.mset},
		{"msetnx", -3, -1, 2, write, call.mset},
		{"append", 3, 1, 1, write, call.append},
		{"setrange", 4, 1, 1, write, call.setRange},
		{"incr", 2, 1, 1, write, call.incr},
		{"decr", 2, 1, 1, write, call.incr},
		{"incrby", 3, 1, 1, write, call.incr},
		{"decrby", 3, 1, 1, write, call.incr},

		{"del", -2, -1, 1, write, call.del},
		{"unlink", -2, -1, 1, write, call.del},
		{"delex", -2, 1, 1, write, call.delex},
		{"delifeq", 3, 1, 1, write, call.delifeq},
		{"expire", -3, 1, 1, write, call.expireIn},
		{"pexpire", -3, 1, 1, write, call.expireIn},
		{"expireat", -3, 1, 1, write, call.expireIn},
		{"pexpireat", -3, 1, 1, write, call.expireIn},
		{"persist", 2, 1, 1, write, call.persist},
	}
}
