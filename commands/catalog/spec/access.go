package spec

import (
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// Access is the way in which a command uses the value of a key, as Redis' ACL distinguishes it. A
// command reads the value, changes it, does both, or does neither. EXISTS does neither.
type Access uint8

// ReadsValue is set if the command reads the value, ChangesValue if it changes the value.
const (
	ReadsValue Access = 1 << iota
	ChangesValue
)

// accesses lists commands and subcommands (command|subcommand) by their access to the first key and
// to the other keys. For SET and BITFIELD, the access depends on the options. Every other command
// that is not listed counts as reading and changing.
var accesses = []struct {
	first, rest Access
	names       string
}{
	{0, 0, `
		exists hexists hlen hstrlen llen memory|usage object|encoding object|freq object|idletime object|refcount
		scard sismember strlen touch type watch xlen zcard`},
	{ReadsValue, ReadsValue, `
		bitcount bitfield_ro bitpos digest dump eval_ro evalsha_ro expiretime fcall_ro geodist geohash geopos
		georadius_ro georadiusbymember_ro geosearch get getbit getrange hget hgetall hkeys hmget hrandfield hscan
		hvals lcs lindex lpos lrange mget pexpiretime pfcount pfdebug pttl sdiff sinter sintercard smembers
		smismember sort_ro srandmember sscan substr sunion ttl xinfo|consumers xinfo|groups xinfo|stream xpending
		xrange xread xreadgroup xrevrange zcount zdiff zinter zintercard zlexcount zmscore zrandmember zrange
		zrangebylex zrangebyscore zrank zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion`},
	{ChangesValue, ChangesValue, `
		append del expire expireat geoadd hdel hmset hset hsetex hsetnx linsert lpush lpushx lrem lset ltrim mset
		msetex msetnx persist pexpire pexpireat pfadd psetex restore restore-asking rpush rpushx sadd setex setnx
		setrange srem unlink xack xadd xautoclaim xclaim xdel xgroup|create xgroup|createconsumer xgroup|delconsumer
		xgroup|destroy xgroup|setid xsetid xtrim zadd zrem zremrangebylex zremrangebyrank zremrangebyscore`},
	{ReadsValue | ChangesValue, ChangesValue, `blmove brpoplpush lmove rename renamenx rpoplpush smove`},
	{ReadsValue | ChangesValue, ReadsValue, `pfmerge`},
	{ReadsValue, ChangesValue, `copy georadius georadiusbymember sort`},
	{ChangesValue, ReadsValue, `
		bitop geosearchstore sdiffstore sinterstore sunionstore zdiffstore zinterstore zrangestore zunionstore`},
}

// accessByName maps names to accesses. It is immutable.
var accessByName = func() map[string][2]Access {
	byName := map[string][2]Access{}
	for _, group := range accesses {
		for name := range strings.FieldsSeq(group.names) {
			byName[name] = [2]Access{group.first, group.rest}
		}
	}
	return byName
}()

// AccessOf returns the access of a command to its first key and to its other keys. The name is in
// lower case, with a subcommand as command|subcommand. An unknown command counts as reading and
// changing.
func AccessOf(name string, words [][]byte) (first, others Access) {
	both := ReadsValue | ChangesValue
	switch name {
	case "set":
		if !setCommandReadsValue(words) {
			return ChangesValue, ChangesValue
		}
	case "bitfield":
		if bitfieldOnlyReads(words) {
			return ReadsValue, ReadsValue
		}
	default:
		if a, known := accessByName[name]; known {
			return a[0], a[1]
		}
	}
	return both, both
}

// setCommandReadsValue reports whether a SET returns the old value, or compares it.
func setCommandReadsValue(words [][]byte) bool {
	for _, w := range words[min(3, len(words)):] {
		switch syntax.LowerCString(w) {
		case "get", "ifeq", "ifne", "ifdeq", "ifdne":
			return true
		}
	}
	return false
}

// bitfieldOnlyReads reports whether a BITFIELD has only GET operations.
func bitfieldOnlyReads(words [][]byte) bool {
	for i := 2; i < len(words); i++ {
		remaining := len(words) - i - 1
		switch op := syntax.LowerCString(words[i]); {
		case op == "get" && remaining >= 2:
			i += 2
		case op == "overflow" && remaining >= 1:
			i++
		default:
			return false
		}
	}
	return true
}
