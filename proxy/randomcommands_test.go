package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// commandGenerator makes up the commands of one client. It follows how they change the connection,
// so that it knows which commands are possible next. It ignores the replies.
type commandGenerator struct {
	besideLocks bool // lock keys are configured
	*rand.Rand
	script []item

	proto    int
	multi    bool
	poisoned bool // the transaction will fail
	hello    int  // the protocol that the transaction will change to
	watching bool
	channels []string // subscribed to
	patterns []string
	silent   bool
	odd      bool // the proxy cannot follow the stream any more
	next     *int // for unique values
}

// item is a part of the stream: a command, or a lock command that only the proxy gets, with its
// reply.
type item struct{ sent, ownReply string }

func newCommandGenerator(rng *rand.Rand, next *int) *commandGenerator {
	return &commandGenerator{Rand: rng, proto: 2, next: next}
}

// write makes up a stream of n items whose last reply holds mark.
func (a *commandGenerator) write(n int, mark string) []item {
	a.script = nil
	for range n {
		a.command()
		if a.IntN(4) == 0 {
			a.lock()
		}
	}
	if a.multi {
		a.end()
	}
	if a.silent {
		a.silent = false
		a.say("CLIENT REPLY ON")
	}
	a.say("PING " + mark)
	return a.script
}

func (a *commandGenerator) say(line string) { a.words(strings.Split(line, " ")...) }

// words adds a command, sometimes inline.
func (a *commandGenerator) words(words ...string) {
	odd := []byte("\x00\r\n\t '\"\\\xff")
	plain := !slices.ContainsFunc(words, func(w string) bool {
		return w == "" || len(w) > 100 || slices.ContainsFunc([]byte(w),
			func(b byte) bool { return slices.Contains(odd, b) })
	})
	switch {
	case !plain || a.IntN(8) > 0:
		a.script = append(a.script, item{sent: array(words...)})
	case a.IntN(2) > 0:
		a.script = append(a.script, item{sent: "  " + strings.Join(words, " \t") + "\n"})
	default:
		a.script = append(a.script, item{sent: `"` + strings.Join(words, `" "`) + "\"\r\n"})
	}
}

// lock adds a lock command, which the upstream must not see.
func (a *commandGenerator) lock() {
	if a.multi || a.odd || a.restricted() {
		return
	}
	*a.next++
	name, ttl := fmt.Sprintf("lock:%d", *a.next), strconv.Itoa(2_000_000+*a.next)
	reply := ":" + ttl + "\r\n"
	if a.silent {
		reply = ""
	}
	a.script = append(a.script, item{array("Lock", name, "token", "PX", ttl), reply})
}

// restricted reports whether the connection is in RESP2's subscribed mode.
func (a *commandGenerator) restricted() bool {
	return a.proto == 2 && len(a.channels)+len(a.patterns) > 0
}

// command adds a command of any possible kind.
func (a *commandGenerator) command() {
	switch n := a.IntN(100); {
	case a.restricted():
		a.subscription()
	case n < 70 || a.silent && n < 80:
		a.data()
	case n < 75:
		a.mistake()
	case n < 85:
		a.connection()
	case a.silent:
		a.silent = false
		a.say("CLIENT REPLY ON")
	case n < 92:
		a.transaction()
	case a.multi:
		a.data()
	case n < 96:
		a.subscription()
	default:
		a.replyMode()
	}
}

func (a *commandGenerator) pick(all ...string) string { return all[a.IntN(len(all))] }
func (a *commandGenerator) key() string {
	return a.pick("a", "b", "c", "{x}d", "key:5", "\x00\r\n\xff")
}
func (a *commandGenerator) number() string { return strconv.Itoa(a.IntN(60) - 5) }

func (a *commandGenerator) value() string {
	switch a.IntN(12) {
	case 0:
		return ""
	case 1:
		return "\r\n*1\r\n$4\r\nPING\r\n\x00\xff"
	case 2:
		return strings.Repeat("v", a.IntN(100_000))
	case 3:
		return a.number()
	}
	return a.pick("x", "hello world", "3.25", "+OK", "LOCK", strings.Repeat("w", 50))
}

// small returns a value that changes neither a collection's encoding nor, therefore, the order of
// its elements.
func (a *commandGenerator) small() string { return a.pick("x", "yy", "3.25", "", "\r\n", a.number()) }

// shapes lists commands on data. K, V, S, N and F stand for a key, a value, a small value, a number
// and a field. No command returns random data, or elements in an unspecified order.
var shapes = strings.FieldsFunc(`SET K V|SET K V|SET K V|GET K|GET K|GET K|SET K V NX|SET K V XX GET|GETSET K V|GETDEL K|GETEX K PERSIST|SETNX K V|APPEND K S|STRLEN K
SETRANGE K 3 S|GETRANGE K 0 N|MSET K V K V|MGET K K K|INCR K|INCRBY K N|INCRBYFLOAT K 0.5|DECR K|SETBIT K 7 1|GETBIT K N|BITCOUNT K|BITPOS K 1|LCS K K
DEL K|DEL K K|UNLINK K|EXISTS K K|TYPE K|RENAME K K|COPY K K REPLACE|OBJECT ENCODING K|EXPIRE K 1000|PERSIST K|TOUCH K|DBSIZE|DUMP K
RPUSH K S S|LPUSH K S|LPUSH K V|LPOP K|RPOP K 2|LLEN K|LRANGE K 0 -1|LINDEX K N|LINSERT K BEFORE x S|LREM K 0 x|LSET K 0 S|LTRIM K 0 5|LMOVE K K LEFT RIGHT|LPOS K x|LMPOP 2 K K LEFT
HSET K F S F S|HGET K F|HMGET K F F|HGETALL K|HKEYS K|HVALS K|HDEL K F|HLEN K|HINCRBY K F N|HINCRBYFLOAT K F 1.5|HEXISTS K F|HSTRLEN K F
SADD K N N N|SREM K N|SMEMBERS K|SCARD K|SISMEMBER K N|SMISMEMBER K N N|SUNION K K|SINTER K K|SDIFFSTORE K K K|SMOVE K K N|SINTERCARD 2 K K
ZADD K N S N S|ZADD K INCR 1.5 x|ZSCORE K x|ZRANGE K 0 -1|ZRANGE K 0 -1 WITHSCORES|ZRANGEBYSCORE K -inf +inf|ZRANK K x|ZINCRBY K 2.5 x|ZPOPMIN K|ZCARD K|ZUNION 2 K K WITHSCORES|ZMSCORE K x yy|ZREM K x|ZCOUNT K 0 N
XADD K I-1 F S|XLEN K|XRANGE K - +|XREAD COUNT 2 STREAMS K 0|XREVRANGE K + - COUNT 1|XDEL K 1-1|XGROUP CREATE K g 0|XREADGROUP GROUP g c COUNT 1 STREAMS K >|XPENDING K g|XACK K g 1-1
PFADD K S|PFCOUNT K|GEOADD K 13.36 38.11 p|GEOPOS K p q|GEODIST K p p|BLPOP K 0.001|BLMOVE K K LEFT LEFT 0.001|BZPOPMIN K 0.001|SORT K|WAIT 0 1
EVAL return{1,'x',false,{2,{}}} 0|EVAL return(redis.call('GET',KEYS[1])) 1 K|EVAL return(redis.error_reply('MY_error')) 0|EVAL redis.setresp(3)return(redis.call('HGETALL',KEYS[1])) 1 K
EVALSHA ffffffffffffffffffffffffffffffffffffffff 0|SCRIPT EXISTS x|MOVE K 1|SWAPDB 0 1|FLUSHDB|SELECT 1|SELECT 0|SELECT 0|ECHO V|PING|PUBLISH ch S|PUBLISH other S
COMMAND GETKEYS SET K V|COMMAND INFO get|COMMAND DOCS get|INFO nosuch|COMMAND INFO nosuch|CONFIG GET maxmemory-policy|DEBUG PROTOCOL map|DEBUG PROTOCOL attrib|DEBUG PROTOCOL bignum|DEBUG PROTOCOL verbatim|DEBUG PROTOCOL null|DEBUG PROTOCOL push`, func(r rune) bool { return r == '|' || r == '\n' })

func (a *commandGenerator) data() { a.fill(a.shape()) }

// shape returns one of the shapes.
func (a *commandGenerator) shape() string {
	for {
		shape := a.pick(shapes...)
		// With lock keys, FLUSHDB is refused in a MULTI, and its invalidations precede its reply.
		if !a.besideLocks || shape != "FLUSHDB" {
			return shape
		}
	}
}

// fill adds a command of this shape.
func (a *commandGenerator) fill(shape string) {
	words := strings.Split(shape, " ")
	for i, word := range words {
		switch word {
		case "K":
			words[i] = a.key()
		case "V":
			words[i] = a.value()
		case "S":
			words[i] = a.small()
		case "N":
			words[i] = a.number()
		case "F":
			words[i] = a.pick("f1", "f2", "f3")
		case "I-1":
			*a.next++
			words[i] = fmt.Sprintf("%d-1", *a.next)
		}
	}
	if a.IntN(3) == 0 {
		words[0] = strings.ToLower(words[0])
	}
	a.words(words...)
}

// mistake adds a command that Redis refuses before it runs.
func (a *commandGenerator) mistake() {
	a.poisoned = true
	a.fill(a.pick("NOSUCH", "NOSUCH K V", "GET", "SET K", "GET K K", "EVAL", "LOCKS K", "CLIENT", "CLIENT NOSUCH",
		"COMMAND NOSUCH", "HELLO 3 x y z w", "SUBSCRIBE", "XADD K"))
	if !a.multi {
		a.poisoned = false
	}
}

// connection adds a command that changes the connection, or describes it.
func (a *commandGenerator) connection() {
	switch line := a.pick("HELLO 2", "HELLO 3", "HELLO 3", "HELLO", "HELLO 4", "HELLO 3 SETNAME me", "RESET",
		"CLIENT SETNAME you", "CLIENT GETNAME", "CLIENT NO-EVICT on",
		"CLIENT TRACKING on", "CLIENT TRACKING off", "CLIENT GETREDIR", "WATCH K", "UNWATCH", "SELECT 2", "SELECT 99",
		"READONLY", "REPLCONF x y"); {
	case line == "RESET":
		*a = commandGenerator{Rand: a.Rand, script: a.script, next: a.next, proto: 2, odd: a.odd,
			besideLocks: a.besideLocks}
		a.say(line)
	case line == "HELLO" || line == "HELLO 4":
		a.say(line)
	case strings.HasPrefix(line, "HELLO"):
		a.changeProtocol(line)
	case line == "WATCH K":
		a.watching = a.watching || !a.multi
		a.fill(line)
	default:
		a.fill(line)
	}
}

func (a *commandGenerator) changeProtocol(line string) {
	proto := int(line[len("HELLO ")] - '0')
	switch {
	case a.multi && (a.watching || len(a.channels)+len(a.patterns) > 0):
		return // it is unknown whether the command will run
	case a.multi:
		a.hello = proto
	case a.silent:
		return
	default:
		a.proto = proto
	}
	a.say(line)
}

func (a *commandGenerator) transaction() {
	switch {
	case !a.multi:
		a.multi, a.poisoned, a.hello = true, false, 0
		a.say("MULTI")
	case a.IntN(6) == 0:
		a.say("MULTI")
	default:
		a.end()
	}
}

// end ends a transaction.
func (a *commandGenerator) end() {
	line := a.pick("EXEC", "EXEC", "DISCARD")
	if line == "EXEC" && !a.poisoned && a.hello != 0 {
		a.proto = a.hello
	}
	a.multi, a.watching, a.poisoned = false, false, false
	a.say(line)
}

func (a *commandGenerator) subscription() {
	channel := a.pick("ch", "c2", "\r\n")
	switch n := a.IntN(10); {
	case n < 3:
		a.words("SUBSCRIBE", channel)
		a.channels = with(a.channels, channel)
	case n < 4:
		a.words("psubscribe", "c*", "o?her")
		a.patterns = []string{"c*", "o?her"}
	case n < 6:
		a.words("UNSUBSCRIBE", channel)
		a.channels = without(a.channels, channel)
	case n < 7:
		a.words("PUNSUBSCRIBE", "c*", "o?her", "none")
		a.patterns = nil
	case n < 8 && len(a.channels) <= 1:
		a.say("UNSUBSCRIBE")
		a.channels = nil
	case n < 9:
		a.words("PING", a.small())
	default:
		a.fill(a.pick("GET K", "NOSUCH K", "PUBLISH ch S", "MGET K", "COMMAND GETKEYS GET K", "INFO nosuch"))
	}
}

func with(all []string, one string) []string {
	return append(without(all, one), one)
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

func (a *commandGenerator) replyMode() {
	if len(a.channels)+len(a.patterns) > 0 {
		return
	}
	if a.IntN(2) == 0 {
		a.silent = true
		a.say("CLIENT REPLY OFF")
		return
	}
	a.say("CLIENT REPLY SKIP")
	a.fill(a.pick("GET K", "SET K V", "NOSUCH", "SELECT 1", "RPUSH K S", "COMMAND COUNT", "INFO"))
}
