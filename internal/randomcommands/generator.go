// Package randomcommands makes valid and invalid random commands, for tests that compare with a
// real Redis. If a command may have a random result in Redis, the package makes it only in a form
// whose result is certain.
package randomcommands

import (
	"math/rand/v2"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/spec"
)

// Generator makes random commands on a few keys. The commands keep the collections so small that
// Redis keeps the order of their items.
type Generator struct {
	*rand.Rand
	Keys []string
	// ExactWordCount prevents commands with one word too few or too many.
	ExactWordCount bool
}

func (c Generator) pick(words ...string) string { return words[c.IntN(len(words))] }

// collectionTemplates holds templates of commands on collections. In all templates, k is a key, v a
// text, s a score, f a fraction, n a number, t a time to wait, u a cursor, l a limit of a range of
// texts, r a limit of a range of scores, b binary data. Words in brackets are optional; | separates
// alternatives.
var collectionTemplates = []string{
	"hset k v v", "hset k v v v v", "hset k v", "hmset k v v v v", "hsetnx k v v", "hget k v", "hmget k v v",
	"hgetall k", "hkeys k", "hvals k",
	"hdel k v", "hdel k v v v", "hexists k v", "hlen k", "hstrlen k v", "hincrby k v n", "hincrbyfloat k v f",
	"hscan k 0", "hscan k u [match v] [count n]",
	"lpush k v", "rpush k v", "lpush k v v v", "rpush k v v v", "lpushx k v", "rpushx k v v", "lpop k",
	"rpop k", "lpop k n", "rpop k n", "lpop k n n", "llen k",
	"lrange k n n", "lrange k 0 -1", "lindex k n", "lset k n v", "linsert k before|after|AFTER|foo v v",
	"lrem k n v", "ltrim k n n", "ltrim k 0 5",
	"lmove k k left|right left|right|foo", "rpoplpush k k",
	"blpop k t", "brpop k k t", "blmove k k left right t", "brpoplpush k k t",
	"sadd k v", "sadd k v v v", "sadd k n n", "sadd k n", "srem k v", "srem k v v n", "smembers k",
	"sismember k v", "smismember k v v n", "scard k", "spop k 100", "spop k 0|-1|x", "spop k 1 1",
	"sscan k 0 count 1000", "sscan k 0|x match v count 1000",
	"zadd k s v", "zadd k s v s v", "zadd k s v s v s v", "zadd k [nx] [XX] [gt] [lt] [ch] [incr] s v",
	"zadd k [gt] [ch] s v s v", "zadd k [lt|xx] [ch] s v s v", "zadd k nx", "zadd k incr s v", "zadd k s",
	"zincrby k s v", "zincrby k nx v", "zrem k v", "zrem k v v", "zcard k", "zscore k v", "zmscore k v v",
	"zrank k v", "zrevrank k v", "zcount k r r", "zlexcount k l l",
	"zrange k n n", "zrange k 0 -1 withscores", "zrange k n n [rev] [withscores]",
	"zrange k r r byscore [rev] [withscores] [limit n n]", "zrange k l l bylex [rev] [limit n n]",
	"zrange k l l bylex withscores", "zrange k n n limit n n", "zrange k n n foo", "zrange k r r byscore bylex",
	"zrevrange k n n [withscores] [rev]",
	"zrangebyscore k r r [withscores] [limit n n] [rev]", "zrevrangebyscore k r r [withscores] [limit n n]",
	"zrangebylex k l l [limit n n]", "zrevrangebylex k l l [limit n n] [withscores]",
	"zremrangebyscore k r r", "zremrangebyrank k n n", "zremrangebylex k l l", "zpopmin k", "zpopmax k",
	"zpopmin k n", "zpopmax k n", "zpopmax k 1 1",
	"bzpopmin k t", "bzpopmax k k t",
	"zscan k 0", "zscan k u [match v] [count n]",
	"zinterstore k 2 k k [weights s s] [aggregate sum|min|max|foo] [withscores]",
	"zinterstore k 3 k k k [aggregate min|max]", "zinterstore k 1 k weights s", "zinterstore k 1 k [limit n]",
	"zinterstore k n k",
}

// stringTemplates holds templates of commands on strings, and on keys of any type.
var stringTemplates = []string{
	"type k", "exists k k", "del k", "persist k", "rename k k", "renamenx k k", "copy k k [replace] [foo]",
	"get k", "set k v", "set k v get", "getset k v", "append k v", "strlen k", "getdel k", "getex k",
	"setnx k v",
	"incr k", "incrbyfloat k f", "incrbyfloat k f", "set k f", "set k b", "append k b", "getrange k 0 n",
	"setrange k 1 v", "mget k k", "del k k k", "expire k 10000", "touch k",
}

// word returns a random word for a part of a template: a letter, a list of alternatives, or a fixed
// word.
func (c Generator) word(placeholder string) []string {
	switch placeholder {
	case "k":
		return []string{c.pick(c.Keys...)}
	case "v":
		return []string{c.pick("x", "y", "z", "xy", "", "7", "-3", "*", "x*", "\x00\xff\r\n")}
	case "s":
		return []string{c.pick(
			"0", "1", "1", "2", "2.5", "-1", "-0", "0.1", "1e3", "+5", "inf", "-inf", "nan", "x", "", " 1",
			"1 ", "3.0e400", "1e-500", "0x10", "17179869184.125", "1e17", "100000000000000000000",
			"9007199254740993", "(1", "1_0",
		)}
	case "n":
		return []string{c.pick(
			"0", "1", "2", "3", "-1", "-2", "-3", "5", "100", "-100", "x", "", "1.0", "9223372036854775807",
			"-9223372036854775808", "9223372036854775808",
		)}
	case "f":
		return []string{c.pick(
			"0", "1", "2.5", "-1", "-0", "0.1", "1e3", "+5", "inf", "-inf", "nan", "x", "", " 1", "3.0e5000",
			"1e-500", "0x10", "1e17", "17179869184.125", "9007199254740993", "0.1234567890123456789",
		)}
	case "u":
		return []string{c.pick("0", "0", "7", "x", "-1", "", " 1", "18446744073709551616")}
	case "t":
		return []string{c.pick("0", "0", "0.5", "1", "-1", "x", "1e400", "", "9223372036854775807", "-0.0001", "inf")}
	case "r":
		return []string{c.pick(
			"0", "1", "(1", "2", "(2.5", "-1", "-inf", "+inf", "inf", "(-inf", "x", "", "(", "nan", " 1", "1 ",
			"0x2",
		)}
	case "l":
		return []string{c.pick("-", "+", "[x", "(x", "[y", "(z", "[", "(", "x", "", "+x", "-x", "[xy", "[7")}
	case "b":
		return []string{c.pick(
			"\x00", "\xff", "\xff\xff\xff", "\x00\x00\x80", "\xff\xf0\x00", "\x00\xff\xf0", "foobar", "7", "-3",
			"", "\x00redlock:", strings.Repeat("\xf0\x0f", 20),
		)}
	}
	return []string{c.pick(strings.Split(placeholder, "|")...)}
}

// Next returns a command from a random template.
func (c Generator) Next(templates []string) (words []string) {
	isSkipping := false
	for part := range strings.FieldsSeq(c.pick(templates...)) {
		isFirst, isLast := strings.HasPrefix(part, "["), strings.HasSuffix(part, "]")
		if isFirst {
			isSkipping = c.IntN(2) == 0
		}
		if !isSkipping {
			words = append(words, c.word(strings.Trim(part, "[]"))...)
		}
		if isLast {
			isSkipping = false
		}
	}
	mutation := c.IntN(60)
	if c.ExactWordCount {
		return words
	}
	switch mutation {
	case 0:
		if words[0] != "spop" { // SPOP without a count has a random result
			words = words[:max(2, len(words)-1)]
		}
	case 1:
		if !strings.HasSuffix(words[0], "rank") { // one more word is valid since Redis 7.2
			words = append(words, c.word("k")...)
		}
	}
	return words
}

// IsUnordered reports whether the items of the command's reply have no defined order.
func IsUnordered(words []string) bool {
	return slices.Contains([]string{"smembers", "sscan", "spop"}, words[0])
}

// TemplateLists returns lists of templates: all commands, commands on strings, and commands on each
// type of collection.
func TemplateLists() (lists [][]string) {
	whole := slices.Concat(collectionTemplates, stringTemplates)
	lists = append(lists, slices.Clone(whole), slices.Clone(stringTemplates))
	for _, letter := range "hlsz" {
		lists = append(lists, slices.DeleteFunc(slices.Clone(whole), func(s string) bool {
			isList := letter == 'l' && (s[0] == 'r' || s[0] == 'b')
			return s[0] != byte(letter) && !isList && !strings.HasPrefix(s, "rename") && s != "set k v" && s != "del k"
		}))
	}
	return lists
}

// MayMiscountKeys reports whether a command of this template may have a wrong number of keys. Then
// the words that Redis takes for keys are not the words that the template marks as keys.
func MayMiscountKeys(template string) bool { return template == "zinterstore k n k" }

// MayBlock reports whether the command may block outside a transaction.
func MayBlock(words []string) bool {
	cmd := spec.Find([]byte(words[0]))
	return cmd != nil && cmd.HasAny(spec.Blocks)
}
