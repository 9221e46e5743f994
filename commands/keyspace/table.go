package keyspace

import (
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/keyspace/contents"
)

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

// fast are the commands that do not go through all that their keys hold. It is never changed.
var fast = func() map[string]bool {
	fast := map[string]bool{}
	for name, in := range spec.CategoriesIn() {
		fast[name] = in&spec.CategoriesOf("fast") != 0
	}
	return fast
}()

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
		{the("type"), call.kind, docs{"generic", "1.0.0", "Returns what kind of value a lock key holds, or none."}},
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
		{the("msetex"), call.msetex, docs{"string", "8.4.0", "Sets lock keys for a time; with NX takes them if none of them is held."}},
		{the("digest"), call.digest, docs{"string", "8.4.0", "Returns the digest of the value that a majority holds under a lock key."}},
		{the("append"), call.append, docs{"string", "2.0.0", "Appends a text to the value of a lock key."}},
		{the("setrange"), call.setRange, docs{"string", "2.2.0", "Overwrites a part of the value of a lock key."}},
		{the("incr"), call.incr, docs{"string", "1.0.0", "Adds one to the number in a lock key."}},
		{the("decr"), call.incr, docs{"string", "1.0.0", "Takes one from the number in a lock key."}},
		{the("incrby"), call.incr, docs{"string", "1.0.0", "Adds a number to the one in a lock key."}},
		{the("decrby"), call.incr, docs{"string", "1.0.0", "Takes a number from the one in a lock key."}},
		{the("incrbyfloat"), call.incrByFloat, docs{"string", "2.6.0", "Adds a fraction to the number in a lock key."}},

		{the("del"), call.del, docs{"generic", "1.0.0", "Removes lock keys, whoever holds them."}},
		{the("unlink"), call.del, docs{"generic", "4.0.0", "Removes lock keys, whoever holds them."}},
		{the("delex"), call.delex, docs{"string", "8.4.0", "Removes a lock key if it holds, or does not hold, a value."}},
		{the("delifeq"), call.delifeq, docs{"string", "9.0.0", "Removes a lock key if it holds a value."}},
		{the("expire"), call.expireIn, docs{"generic", "1.0.0", "Gives a held lock key a time in seconds."}},
		{the("pexpire"), call.expireIn, docs{"generic", "2.6.0", "Gives a held lock key a time in milliseconds."}},
		{the("expireat"), call.expireIn, docs{"generic", "1.2.0", "Gives a held lock key an end as a Unix time in seconds."}},
		{the("pexpireat"), call.expireIn, docs{"generic", "2.6.0", "Gives a held lock key an end as a Unix time in milliseconds."}},
		{the("persist"), call.persist, docs{"generic", "2.2.0", "Takes the time of a lock key away."}},

		{the("hset"), call.hset, docs{"hash", "2.0.0", "Sets fields of a hash in a lock key."}},
		{the("hmset"), call.hset, docs{"hash", "2.0.0", "Sets fields of a hash in a lock key."}},
		{the("hsetnx"), call.hsetnx, docs{"hash", "2.0.0", "Sets a field of a hash in a lock key if it has no such field."}},
		{the("hget"), call.hget, docs{"hash", "2.0.0", "Returns a field of a hash in a lock key."}},
		{the("hmget"), call.hmget, docs{"hash", "2.0.0", "Returns fields of a hash in a lock key."}},
		{the("hgetall"), call.hgetall, docs{"hash", "2.0.0", "Returns all of a hash in a lock key."}},
		{the("hkeys"), call.hgetall, docs{"hash", "2.0.0", "Returns the names of the fields of a hash in a lock key."}},
		{the("hvals"), call.hgetall, docs{"hash", "2.0.0", "Returns the values of a hash in a lock key."}},
		{the("hdel"), removes[*contents.Hash], docs{"hash", "2.0.0", "Removes fields of a hash in a lock key, and the key with the last one."}},
		{the("hexists"), call.hexists, docs{"hash", "2.0.0", "Returns whether a hash in a lock key has a field."}},
		{the("hlen"), length[*contents.Hash], docs{"hash", "2.0.0", "Counts the fields of a hash in a lock key."}},
		{the("hstrlen"), call.hstrlen, docs{"hash", "3.2.0", "Returns the length of a value of a hash in a lock key."}},
		{the("hincrby"), call.hincrby, docs{"hash", "2.0.0", "Adds to the number in a field of a hash in a lock key."}},
		{the("hincrbyfloat"), call.hincrbyfloat, docs{"hash", "2.6.0", "Adds a fraction to the number in a field of a hash in a lock key."}},
		{the("hrandfield"), call.hrandfield, docs{"hash", "6.2.0", "Returns fields of a hash in a lock key at random."}},
		{the("hgetdel"), call.hgetdel, docs{"hash", "8.0.0", "Returns fields of a hash in a lock key and removes them, and the key with the last one."}},
		{the("hgetex"), call.hgetex, docs{"hash", "8.0.0", "Returns fields of a hash in a lock key."}},
		{the("hsetex"), call.hsetex, docs{"hash", "8.0.0", "Sets fields of a hash in a lock key, if it has none or all of them."}},
		{the("hscan"), call.scan, docs{"hash", "2.8.0", "Returns all of a hash in a lock key that matches."}},

		{the("lpush"), call.push, docs{"list", "1.0.0", "Puts elements at the beginning of a list in a lock key."}},
		{the("rpush"), call.push, docs{"list", "1.0.0", "Puts elements at the end of a list in a lock key."}},
		{the("lpushx"), call.push, docs{"list", "2.2.0", "Puts elements at the beginning of a list in a lock key if there is one."}},
		{the("rpushx"), call.push, docs{"list", "2.2.0", "Puts elements at the end of a list in a lock key if there is one."}},
		{the("lpop"), call.pop, docs{"list", "1.0.0", "Takes elements off the beginning of a list in a lock key."}},
		{the("rpop"), call.pop, docs{"list", "1.0.0", "Takes elements off the end of a list in a lock key."}},
		{the("llen"), length[*contents.List], docs{"list", "1.0.0", "Returns the length of a list in a lock key."}},
		{the("lrange"), call.lrange, docs{"list", "1.0.0", "Returns a range of a list in a lock key."}},
		{the("lindex"), call.lindex, docs{"list", "1.0.0", "Returns an element of a list in a lock key."}},
		{the("lset"), call.lset, docs{"list", "1.0.0", "Replaces an element of a list in a lock key."}},
		{the("linsert"), call.linsert, docs{"list", "2.2.0", "Puts an element before or after another one of a list in a lock key."}},
		{the("lrem"), call.lrem, docs{"list", "1.0.0", "Removes elements that are equal to one from a list in a lock key."}},
		{the("ltrim"), call.ltrim, docs{"list", "1.0.0", "Keeps only a range of a list in a lock key."}},
		{the("lpos"), call.lpos, docs{"list", "6.0.6", "Returns where an element is in a list in a lock key."}},
		{the("lmove"), call.lmove, docs{"list", "6.2.0", "Moves an element to the other end of a list in a lock key."}},
		{the("rpoplpush"), call.rpoplpush, docs{"list", "1.2.0", "Moves the last element to the beginning of a list in a lock key."}},
		{the("lmpop"), call.lmpop, docs{"list", "7.0.0", "Takes elements off the first list that exists."}},
		{the("blpop"), call.bpop, docs{"list", "2.0.0", "Takes an element off the first list that exists; in a transaction or script, where it does not wait."}},
		{the("brpop"), call.bpop, docs{"list", "2.0.0", "Takes an element off the end of the first list that exists; in a transaction or script, where it does not wait."}},
		{the("blmove"), call.lmove, docs{"list", "6.2.0", "Moves an element to the other end of a list; in a transaction or script, where it does not wait."}},
		{the("brpoplpush"), call.rpoplpush, docs{"list", "2.2.0", "Moves the last element to the beginning of a list; in a transaction or script, where it does not wait."}},
		{the("blmpop"), call.lmpop, docs{"list", "7.0.0", "Takes elements off the first list that exists; in a transaction or script, where it does not wait."}},

		{the("sadd"), call.sadd, docs{"set", "1.0.0", "Adds members to a set in a lock key."}},
		{the("srem"), removes[*contents.Set], docs{"set", "1.0.0", "Removes members from a set in a lock key."}},
		{the("smembers"), call.smembers, docs{"set", "1.0.0", "Returns all members of a set in a lock key."}},
		{the("sismember"), call.sismember, docs{"set", "1.0.0", "Returns whether a set in a lock key has a member."}},
		{the("smismember"), call.sismember, docs{"set", "6.2.0", "Returns which of these members a set in a lock key has."}},
		{the("scard"), length[*contents.Set], docs{"set", "1.0.0", "Counts the members of a set in a lock key."}},
		{the("spop"), call.spop, docs{"set", "1.0.0", "Takes members off a set in a lock key at random."}},
		{the("srandmember"), call.srandmember, docs{"set", "1.0.0", "Returns members of a set in a lock key at random."}},
		{the("sscan"), call.scan, docs{"set", "2.8.0", "Returns all members of a set in a lock key that match."}},
		{the("smove"), call.smove, docs{"set", "1.0.0", "Moves a member to another set."}},
		{the("sinter"), call.combine, docs{"set", "1.0.0", "Returns what all of some sets have."}},
		{the("sunion"), call.combine, docs{"set", "1.0.0", "Returns what any of some sets has."}},
		{the("sdiff"), call.combine, docs{"set", "1.0.0", "Returns what the first of some sets has and none of the others."}},
		{the("sinterstore"), call.combine, docs{"set", "1.0.0", "Stores what all of some sets have."}},
		{the("sunionstore"), call.combine, docs{"set", "1.0.0", "Stores what any of some sets has."}},
		{the("sdiffstore"), call.combine, docs{"set", "1.0.0", "Stores what the first of some sets has and none of the others."}},
		{the("sintercard"), call.sintercard, docs{"set", "7.0.0", "Counts what all of some sets have."}},

		{the("zadd"), call.zadd, docs{"sorted-set", "1.2.0", "Gives members of a sorted set in a lock key their scores."}},
		{the("zincrby"), call.zadd, docs{"sorted-set", "1.2.0", "Adds to the score of a member of a sorted set in a lock key."}},
		{the("zrem"), removes[*contents.SortedSet], docs{"sorted-set", "1.2.0", "Removes members from a sorted set in a lock key."}},
		{the("zcard"), length[*contents.SortedSet], docs{"sorted-set", "1.2.0", "Counts the members of a sorted set in a lock key."}},
		{the("zscore"), call.zscore, docs{"sorted-set", "1.2.0", "Returns the score of a member of a sorted set in a lock key."}},
		{the("zmscore"), call.zscore, docs{"sorted-set", "6.2.0", "Returns the scores of members of a sorted set in a lock key."}},
		{the("zrank"), call.zrank, docs{"sorted-set", "2.0.0", "Returns the place of a member of a sorted set in a lock key."}},
		{the("zrevrank"), call.zrank, docs{"sorted-set", "2.0.0", "Returns the place of a member of a sorted set in a lock key, counted from the end."}},
		{the("zcount"), call.zcount, docs{"sorted-set", "2.0.0", "Counts the members with scores in a range."}},
		{the("zlexcount"), call.zcount, docs{"sorted-set", "2.8.9", "Counts the members in a range."}},
		{the("zrange"), call.zrange, docs{"sorted-set", "1.2.0", "Returns members in a range of places, scores or members."}},
		{the("zrevrange"), call.zrange, docs{"sorted-set", "1.2.0", "Returns members in a range of places, from the end."}},
		{the("zrangebyscore"), call.zrange, docs{"sorted-set", "1.0.5", "Returns members with scores in a range."}},
		{the("zrevrangebyscore"), call.zrange, docs{"sorted-set", "2.2.0", "Returns members with scores in a range, from the end."}},
		{the("zrangebylex"), call.zrange, docs{"sorted-set", "2.8.9", "Returns members in a range."}},
		{the("zrevrangebylex"), call.zrange, docs{"sorted-set", "2.8.9", "Returns members in a range, from the end."}},
		{the("zrangestore"), call.zrangestore, docs{"sorted-set", "6.2.0", "Stores a range of a sorted set."}},
		{the("zremrangebyscore"), call.zcount, docs{"sorted-set", "1.2.0", "Removes members with scores in a range."}},
		{the("zremrangebyrank"), call.zcount, docs{"sorted-set", "2.0.0", "Removes members in a range of places."}},
		{the("zremrangebylex"), call.zcount, docs{"sorted-set", "2.8.9", "Removes members in a range."}},
		{the("zpopmin"), call.zpop, docs{"sorted-set", "5.0.0", "Takes the members with the lowest scores."}},
		{the("zpopmax"), call.zpop, docs{"sorted-set", "5.0.0", "Takes the members with the highest scores."}},
		{the("zmpop"), call.zmpop, docs{"sorted-set", "7.0.0", "Takes members off the first sorted set that exists."}},
		{the("bzpopmin"), call.bzpop, docs{"sorted-set", "5.0.0", "Takes the member with the lowest score; in a transaction or script, where it does not wait."}},
		{the("bzpopmax"), call.bzpop, docs{"sorted-set", "5.0.0", "Takes the member with the highest score; in a transaction or script, where it does not wait."}},
		{the("bzmpop"), call.zmpop, docs{"sorted-set", "7.0.0", "Takes members off the first sorted set that exists; in a transaction or script, where it does not wait."}},
		{the("zrandmember"), call.zrandmember, docs{"sorted-set", "6.2.0", "Returns members of a sorted set in a lock key at random."}},
		{the("zscan"), call.scan, docs{"sorted-set", "2.8.0", "Returns all of a sorted set in a lock key that matches."}},
		{the("zunion"), call.zcombine, docs{"sorted-set", "6.2.0", "Returns what any of some sorted sets has."}},
		{the("zinter"), call.zcombine, docs{"sorted-set", "6.2.0", "Returns what all of some sorted sets have."}},
		{the("zdiff"), call.zcombine, docs{"sorted-set", "6.2.0", "Returns what the first of some sorted sets has and none of the others."}},
		{the("zintercard"), call.zcombine, docs{"sorted-set", "7.0.0", "Counts what all of some sorted sets have."}},
		{the("zunionstore"), call.zcombine, docs{"sorted-set", "2.0.0", "Stores what any of some sorted sets has."}},
		{the("zinterstore"), call.zcombine, docs{"sorted-set", "2.0.0", "Stores what all of some sorted sets have."}},
		{the("zdiffstore"), call.zcombine, docs{"sorted-set", "6.2.0", "Stores what the first of some sorted sets has and none of the others."}},

		{the("sort"), call.sort, docs{"generic", "1.0.0", "Returns or stores the elements of a list, set or sorted set in order."}},
		{the("sort_ro"), call.sort, docs{"generic", "7.0.0", "Returns the elements of a list, set or sorted set in order."}},

		{the("object"), call.object, docs{"generic", "2.2.3", "Returns the form in which a Redis would keep what a lock key holds."}},
		{the("rename"), call.rename, docs{"generic", "1.0.0", "Gives a lock key another name; only its own can be given."}},
		{the("renamenx"), call.rename, docs{"generic", "1.0.0", "Gives a lock key another name if that is free."}},
		{the("copy"), call.copy, docs{"generic", "6.2.0", "Copies a lock key; another cannot be replaced by it."}},
	}
}
