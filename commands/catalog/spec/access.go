package spec

import (
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// Access is what a command does with a key, as far as Redis' ACL asks: it takes from what the key
// holds, changes it, does both, or neither, as EXISTS.
type Access uint8

// The accesses.
const (
	Takes Access = 1 << iota
	Changes
)

// accesses are those of commands and of subcommands (command|subcommand): to the key that stands
// first among the words, and to the others. What is not here takes and changes.
var accesses = []struct {
	first, others Access
	names         string
}{
	{0, 0, `
		exists hexists hlen hstrlen llen memory|usage object|encoding object|freq object|idletime object|refcount scard sismember
		strlen touch type watch xlen zcard`},
	{Takes, Takes, `
		bitcount bitfield_ro bitpos digest dump eval_ro evalsha_ro expiretime fcall_ro geodist geohash geopos georadius_ro
		georadiusbymember_ro geosearch get getbit getrange hget hgetall hkeys hmget hrandfield hscan hvals lcs lindex lpos lrange
		mget pexpiretime pfcount pfdebug pttl sdiff sinter sintercard smembers smismember sort_ro srandmember sscan substr sunion
		ttl xinfo|consumers xinfo|groups xinfo|stream xpending xrange xread xreadgroup xrevrange zcount zdiff zinter zintercard
		zlexcount zmscore zrandmember zrange zrangebylex zrangebyscore zrank zrevrange zrevrangebylex zrevrangebyscore zrevrank
		zscan zscore zunion`},
	{Changes, Changes, `
		append del expire expireat geoadd hdel hmset hset hsetex hsetnx linsert lpush lpushx lrem lset ltrim mset msetex msetnx persist pexpire
		pexpireat pfadd psetex restore restore-asking rpush rpushx sadd setex setnx setrange srem unlink xack xadd xautoclaim
		xclaim xdel xgroup|create xgroup|createconsumer xgroup|delconsumer xgroup|destroy xgroup|setid xsetid xtrim zadd zrem
		zremrangebylex zremrangebyrank zremrangebyscore`},
	{Takes | Changes, Changes, `blmove brpoplpush lmove rename renamenx rpoplpush smove`},
	{Takes | Changes, Takes, `pfmerge`},
	{Takes, Changes, `copy georadius georadiusbymember sort`},
	{Changes, Takes, `
		bitop geosearchstore sdiffstore sinterstore sunionstore zdiffstore zinterstore zrangestore zunionstore`},
}

// accessBy finds them by name. It is never changed.
var accessBy = func() map[string][2]Access {
	all := map[string][2]Access{}
	for _, some := range accesses {
		for name := range strings.FieldsSeq(some.names) {
			all[name] = [2]Access{some.first, some.others}
		}
	}
	return all
}()

// AccessOf is what a command does with the key that stands first among its words, and with its
// other keys. The name is in lower case, that of a subcommand command|subcommand. Of a command that
// is not known it is taken that it takes and changes.
func AccessOf(name string, words [][]byte) (first, others Access) {
	both := Takes | Changes
	switch name {
	case "set":
		if !setTakes(words) {
			return Changes, Changes
		}
	case "bitfield":
		if bitfieldOnlyTakes(words) {
			return Takes, Takes
		}
	default:
		if a, known := accessBy[name]; known {
			return a[0], a[1]
		}
	}
	return both, both
}

// setTakes reports whether a SET gives the old value, or says whether it is another one.
func setTakes(words [][]byte) bool {
	for _, w := range words[min(3, len(words)):] {
		switch syntax.Folded(w) {
		case "get", "ifeq", "ifne", "ifdeq", "ifdne":
			return true
		}
	}
	return false
}

// bitfieldOnlyTakes reports whether a BITFIELD does nothing but GET.
func bitfieldOnlyTakes(words [][]byte) bool {
	for i := 2; i < len(words); i++ {
		left := len(words) - i - 1
		switch op := syntax.Folded(words[i]); {
		case op == "get" && left >= 2:
			i += 2
		case op == "overflow" && left >= 1:
			i++
		default:
			return false
		}
	}
	return true
}
