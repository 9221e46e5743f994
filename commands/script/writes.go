package script

import "strings"

// writes tells whether a script that only reads may not call a command: all that write, or that Redis may pass on to replicas.
func writes(command string) bool { return writeCommands[strings.ToLower(command)] }

// writeCommands are those of Redis 7.0 that COMMAND flags as write, and PUBLISH, SPUBLISH and PFCOUNT; then newer ones that lock
// libraries use.
var writeCommands = wordSet(`
	append bitfield bitop blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin copy decr decrby del expire expireat flushall
	flushdb geoadd georadius georadiusbymember geosearchstore getdel getex getset hdel hincrby hincrbyfloat hmset hset hsetnx incr
	incrby incrbyfloat linsert lmove lmpop lpop lpush lpushx lrem lset ltrim migrate move mset msetnx persist pexpire pexpireat pfadd
	pfdebug pfmerge psetex rename renamenx restore restore-asking rpop rpoplpush rpush rpushx sadd sdiffstore set setbit setex setnx
	setrange sinterstore smove sort spop srem sunionstore swapdb unlink xack xadd xautoclaim xclaim xdel xreadgroup xsetid xtrim zadd
	zdiffstore zincrby zinterstore zmpop zpopmax zpopmin zrangestore zrem zremrangebylex zremrangebyrank zremrangebyscore zunionstore
	publish spublish pfcount
	delex delifeq`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}
