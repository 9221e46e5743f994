package randomcommands

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/internal/resp"
)

// Stream generates the pipelines of one client. It tracks the effects of the commands on the
// connection, and generates only commands whose effects it can track. It ignores the replies.
type Stream struct {
	// HasLockKeys is set if the proxy has lock keys, which FLUSHDB and DBSIZE include.
	HasLockKeys bool
	// LockKeys lists lock keys. Half of the commands on data, and half of the transactions, use one
	// of them.
	LockKeys []string

	random *rand.Rand
	items  []Item

	proto   int
	inMulti bool
	lockKey string // all commands of the transaction are on this lock key
	// watchedKey is a key that the client watches, or empty. The client does not watch lock keys
	// and other keys together.
	watchedKey  string
	execFails   bool // EXEC will fail
	queuedProto int  // the protocol that EXEC will change to, or 0
	watching    bool
	channels    []string // channels to which the client is subscribed
	patterns    []string
	repliesOff  bool
	lastValue   *int // the last unique value; the next value is higher
}

// Item holds a command of the stream. OwnReply is the proxy's reply if Command is a lock command,
// which only the proxy gets.
type Item struct{ Command, OwnReply string }

// NewStream returns the stream of a new connection. The streams of one server share next, a counter
// from which they make unique values.
func NewStream(random *rand.Rand, next *int) *Stream {
	return &Stream{random: random, proto: 2, lastValue: next}
}

// NextPipeline generates a pipeline of about n commands. It ends with a PING whose reply contains
// mark.
func (s *Stream) NextPipeline(n int, mark string) []Item {
	s.items = nil
	for range n {
		s.addAnyCommand()
		if s.random.IntN(4) == 0 {
			s.addLock()
		}
	}
	if s.inMulti {
		s.endTransaction()
	}
	if s.repliesOff {
		s.repliesOff = false
		s.addLine("CLIENT REPLY ON")
	}
	s.addLine("PING " + mark)
	return s.items
}

func (s *Stream) addLine(line string) { s.addCommand(strings.Split(line, " ")...) }

// addCommand adds a command, sometimes inline.
func (s *Stream) addCommand(words ...string) {
	odd := []byte("\x00\r\n\t '\"\\\xff")
	plain := !slices.ContainsFunc(words, func(w string) bool {
		return w == "" || len(w) > 100 || slices.ContainsFunc([]byte(w),
			func(b byte) bool { return slices.Contains(odd, b) })
	})
	switch {
	case !plain || s.random.IntN(8) > 0:
		s.items = append(s.items, Item{Command: encode(words...)})
	case s.random.IntN(2) > 0:
		s.items = append(s.items, Item{Command: "  " + strings.Join(words, " \t") + "\n"})
	default:
		s.items = append(s.items, Item{Command: `"` + strings.Join(words, `" "`) + "\"\r\n"})
	}
}

// addLock adds a lock command, which the upstream must not see, if the proxy accepts one now.
func (s *Stream) addLock() {
	if s.inMulti || s.InSubscribedMode() || len(s.LockKeys) > 0 {
		return
	}
	*s.lastValue++
	name, ttl := fmt.Sprintf("lock:%d", *s.lastValue), strconv.Itoa(2_000_000+*s.lastValue)
	reply := ":" + ttl + "\r\n"
	if s.repliesOff {
		reply = ""
	}
	s.items = append(s.items, Item{encode("Lock", name, "token", "PX", ttl), reply})
}

// InSubscribedMode reports whether the connection is in RESP2's subscribed mode.
func (s *Stream) InSubscribedMode() bool {
	return s.proto == 2 && len(s.channels)+len(s.patterns) > 0
}

// addAnyCommand adds a command of any possible kind.
func (s *Stream) addAnyCommand() {
	switch n := s.random.IntN(100); {
	case s.lockKey != "" && n < 80: // the proxy refuses most other commands in this transaction
		s.addData()
	case s.lockKey != "":
		s.addTransaction()
	case s.InSubscribedMode():
		s.addSubscription()
	case n < 70 || s.repliesOff && n < 80:
		s.addData()
	case n < 75:
		s.addInvalidCommand()
	case n < 85:
		s.addConnection()
	case s.repliesOff:
		s.repliesOff = false
		s.addLine("CLIENT REPLY ON")
	case n < 92:
		s.addTransaction()
	case s.inMulti:
		s.addData()
	case n < 96:
		s.addSubscription()
	default:
		s.addReplyMode()
	}
}

func (s *Stream) pick(choices ...string) string { return choices[s.random.IntN(len(choices))] }
func (s *Stream) key() string {
	return s.pick("a", "b", "c", "{x}d", "key:5", "\x00\r\n\xff")
}
func (s *Stream) number() string { return strconv.Itoa(s.random.IntN(60) - 5) }

func (s *Stream) value() string {
	switch s.random.IntN(12) {
	case 0:
		return ""
	case 1:
		return "\r\n*1\r\n$4\r\nPING\r\n\x00\xff"
	case 2:
		return strings.Repeat("v", s.random.IntN(100_000))
	case 3:
		return s.number()
	}
	return s.pick("x", "hello world", "3.25", "+OK", "LOCK", strings.Repeat("w", 50))
}

// smallValue returns a value that is too short to change a collection's encoding. A change of the
// encoding would change the order of the elements.
func (s *Stream) smallValue() string { return s.pick("x", "yy", "3.25", "", "\r\n", s.number()) }

// dataTemplates lists commands on data. K, V, S, N and F stand for a key, a value, a small value, a
// number and a field, and I-1 for a unique ID of a stream's entry. No command returns random data,
// elements in an unspecified order, or times, as DUMP of a stream does.
var dataTemplates = strings.FieldsFunc(`SET K V|SET K V|SET K V|GET K|GET K|GET K|SET K V NX|SET K V XX GET|GETSET K V|GETDEL K|GETEX K PERSIST|SETNX K V|APPEND K S|STRLEN K
SETRANGE K 3 S|GETRANGE K 0 N|MSET K V K V|MGET K K K|INCR K|INCRBY K N|INCRBYFLOAT K 0.5|DECR K|SETBIT K 7 1|GETBIT K N|BITCOUNT K|BITPOS K 1|LCS K K
DEL K|DEL K K|UNLINK K|EXISTS K K|TYPE K|RENAME K K|COPY K K REPLACE|OBJECT ENCODING K|EXPIRE K 1000|PERSIST K|TOUCH K|DBSIZE
RPUSH K S S|LPUSH K S|LPUSH K V|LPOP K|RPOP K 2|LLEN K|LRANGE K 0 -1|LINDEX K N|LINSERT K BEFORE x S|LREM K 0 x|LSET K 0 S|LTRIM K 0 5|LMOVE K K LEFT RIGHT|LPOS K x|LMPOP 2 K K LEFT
HSET K F S F S|HGET K F|HMGET K F F|HGETALL K|HKEYS K|HVALS K|HDEL K F|HLEN K|HINCRBY K F N|HINCRBYFLOAT K F 1.5|HEXISTS K F|HSTRLEN K F
SADD K N N N|SREM K N|SMEMBERS K|SCARD K|SISMEMBER K N|SMISMEMBER K N N|SUNION K K|SINTER K K|SDIFFSTORE K K K|SMOVE K K N|SINTERCARD 2 K K
ZADD K N S N S|ZADD K INCR 1.5 x|ZSCORE K x|ZRANGE K 0 -1|ZRANGE K 0 -1 WITHSCORES|ZRANGEBYSCORE K -inf +inf|ZRANK K x|ZINCRBY K 2.5 x|ZPOPMIN K|ZCARD K|ZUNION 2 K K WITHSCORES|ZMSCORE K x yy|ZREM K x|ZCOUNT K 0 N
XADD K I-1 F S|XLEN K|XRANGE K - +|XREAD COUNT 2 STREAMS K 0|XREVRANGE K + - COUNT 1|XDEL K 1-1|XGROUP CREATE K g 0|XREADGROUP GROUP g c COUNT 1 STREAMS K >|XPENDING K g|XACK K g 1-1
PFADD K S|PFCOUNT K|GEOADD K 13.36 38.11 p|GEOPOS K p q|GEODIST K p p|BLPOP K 0.001|BLMOVE K K LEFT LEFT 0.001|BZPOPMIN K 0.001|SORT K|WAIT 0 1
EVAL return{1,'x',false,{2,{}}} 0|EVAL return(redis.call('GET',KEYS[1])) 1 K|EVAL return(redis.error_reply('MY_error')) 0|EVAL redis.setresp(3)return(redis.call('HGETALL',KEYS[1])) 1 K
EVALSHA ffffffffffffffffffffffffffffffffffffffff 0|SCRIPT EXISTS x|MOVE K 1|SWAPDB 0 1|FLUSHDB|SELECT 1|SELECT 0|SELECT 0|ECHO V|PING|PUBLISH ch S|PUBLISH other S
COMMAND GETKEYS SET K V|COMMAND INFO get|COMMAND DOCS get|INFO nosuch|COMMAND INFO nosuch|CONFIG GET maxmemory-policy|DEBUG PROTOCOL map|DEBUG PROTOCOL attrib|DEBUG PROTOCOL bignum|DEBUG PROTOCOL verbatim|DEBUG PROTOCOL null|DEBUG PROTOCOL push`, func(r rune) bool { return r == '|' || r == '\n' })

func (s *Stream) addData() {
	key := s.lockKey
	if !s.inMulti && len(s.LockKeys) > 0 && s.random.IntN(2) == 0 {
		key = s.pick(s.LockKeys...)
	}
	if key == "" {
		s.addFromTemplate(s.template())
		return
	}
	for {
		words := Generator{Rand: s.random, Keys: []string{key}}.Next(s.lockKeyTemplates())
		if !MayBlock(words) && !IsUnordered(words) {
			s.addCommand(words...)
			return
		}
	}
}

// lockKeyTemplates returns templates of commands on lock keys.
func (s *Stream) lockKeyTemplates() []string {
	lists := TemplateLists()
	return lists[s.random.IntN(len(lists))]
}

// template returns one of dataTemplates.
func (s *Stream) template() string {
	for {
		if template := s.pick(dataTemplates...); !s.differsWithLockKeys(template) {
			return template
		}
	}
}

// differsWithLockKeys reports whether the command of a template has a different reply at a proxy
// with lock keys.
func (s *Stream) differsWithLockKeys(template string) bool {
	switch template {
	case "FLUSHDB": // the proxy refuses FLUSHDB in MULTI, and sends invalidations before its reply
		return s.HasLockKeys
	case "DBSIZE": // the proxy does not count lock keys in a MULTI
		return len(s.LockKeys) > 0 && s.inMulti
	case "SWAPDB 0 1", // the proxy does not exchange lock keys
		// A message may arrive after the reply to a later command.
		"PUBLISH ch S", "PUBLISH other S",
		// Redis 7.0 does not reset errno. It refuses SORT if a number in an earlier command was out
		// of range.
		"SORT K":
		return len(s.LockKeys) > 0
	}
	return false
}

// addFromTemplate adds the command of a template.
func (s *Stream) addFromTemplate(template string) {
	if strings.HasPrefix(template, "SELECT") && slices.Contains(s.LockKeys, s.watchedKey) {
		// In a transaction with WATCH, lock keys are in the database of the watched key.
		template = "PING"
	}
	words := strings.Split(template, " ")
	for i, word := range words {
		switch word {
		case "K":
			words[i] = s.key()
		case "V":
			words[i] = s.value()
		case "S":
			words[i] = s.smallValue()
		case "N":
			words[i] = s.number()
		case "F":
			words[i] = s.pick("f1", "f2", "f3")
		case "I-1":
			*s.lastValue++
			words[i] = fmt.Sprintf("%d-1", *s.lastValue)
		}
	}
	if s.random.IntN(3) == 0 {
		words[0] = strings.ToLower(words[0])
	}
	s.addCommand(words...)
}

// addInvalidCommand adds a command that Redis refuses before it runs.
func (s *Stream) addInvalidCommand() {
	s.execFails = true
	s.addFromTemplate(s.pick("NOSUCH", "NOSUCH K V", "GET", "SET K", "GET K K", "EVAL", "LOCKS K", "CLIENT", "CLIENT NOSUCH",
		"COMMAND NOSUCH", "HELLO 3 x y z w", "SUBSCRIBE", "XADD K"))
	if !s.inMulti {
		s.execFails = false
	}
}

// addConnection adds a command that changes the connection, or describes it.
func (s *Stream) addConnection() {
	switch line := s.pick("HELLO 2", "HELLO 3", "HELLO 3", "HELLO", "HELLO 4", "HELLO 3 SETNAME me", "RESET",
		"CLIENT SETNAME you", "CLIENT GETNAME", "CLIENT NO-EVICT on",
		"CLIENT TRACKING on", "CLIENT TRACKING off", "CLIENT GETREDIR", "WATCH K", "UNWATCH", "SELECT 2", "SELECT 99",
		"READONLY", "REPLCONF x y"); {
	case line == "RESET":
		*s = Stream{random: s.random, items: s.items, lastValue: s.lastValue, proto: 2,
			HasLockKeys: s.HasLockKeys, LockKeys: s.LockKeys}
		s.addLine(line)
	case line == "HELLO" || line == "HELLO 4":
		s.addLine(line)
	case strings.HasPrefix(line, "HELLO"):
		s.addHello(line)
	case line == "WATCH K":
		s.watching = s.watching || !s.inMulti
		s.addWatch()
	case line == "CLIENT TRACKING on" && len(s.LockKeys) > 0:
		// The masters report changes of lock keys at any time after the change, so replies would
		// differ.
	case line == "UNWATCH" && !s.inMulti:
		// Without a reply, the proxy cannot know whether the upstream executed UNWATCH.
		if !s.repliesOff {
			s.watchedKey = ""
		}
		s.addLine(line)
	default:
		s.addFromTemplate(line)
	}
}

// addWatch adds a WATCH of a key. A client that watches a lock key watches no other key.
func (s *Stream) addWatch() {
	key := s.key()
	if len(s.LockKeys) > 0 && s.random.IntN(2) == 0 {
		key = s.pick(s.LockKeys...)
	}
	if s.watchedKey != "" && (slices.Contains(s.LockKeys, s.watchedKey) || slices.Contains(s.LockKeys, key)) {
		key = s.watchedKey
	}
	if !s.inMulti {
		s.watchedKey = key
	}
	if s.inMulti || !slices.Contains(s.LockKeys, key) {
		s.addCommand("WATCH", key)
		return
	}
	// The proxy notices neither a change that leaves the value, nor an absent key that was made and
	// removed (docs/lock-keys.md). So the key exists, and either changes or does not.
	s.addCommand("SET", key, "watched")
	s.addCommand("WATCH", key)
	if s.random.IntN(2) == 0 {
		*s.lastValue++
		s.addCommand("SET", key, fmt.Sprint(*s.lastValue))
		return
	}
	s.addTransaction()
	s.endTransaction()
}

func (s *Stream) addHello(line string) {
	proto := int(line[len("HELLO ")] - '0')
	switch {
	case s.inMulti && (s.watching || len(s.channels)+len(s.patterns) > 0):
		return // the stream cannot predict whether the transaction will run
	case s.inMulti:
		s.queuedProto = proto
	case s.repliesOff:
		return
	default:
		s.proto = proto
	}
	s.addLine(line)
}

func (s *Stream) addTransaction() {
	switch {
	case !s.inMulti:
		s.inMulti, s.execFails, s.queuedProto, s.lockKey = true, false, 0, ""
		switch {
		case slices.Contains(s.LockKeys, s.watchedKey):
			s.lockKey = s.watchedKey
		case s.watchedKey == "" && len(s.LockKeys) > 0 && s.random.IntN(2) == 0:
			s.lockKey = s.pick(s.LockKeys...)
		}
		s.addLine("MULTI")
		if s.lockKey != "" {
			s.addData()
		}
	case s.random.IntN(6) == 0:
		s.addLine("MULTI")
	default:
		s.endTransaction()
	}
}

// endTransaction ends a transaction.
func (s *Stream) endTransaction() {
	line := s.pick("EXEC", "EXEC", "DISCARD")
	if line == "EXEC" && !s.execFails && s.queuedProto != 0 {
		s.proto = s.queuedProto
	}
	s.inMulti, s.watching, s.execFails, s.lockKey, s.watchedKey = false, false, false, "", ""
	s.addLine(line)
}

func (s *Stream) addSubscription() {
	channel := s.pick("ch", "c2", "\r\n")
	switch n := s.random.IntN(10); {
	case n < 3:
		s.addCommand("SUBSCRIBE", channel)
		s.channels = addItem(s.channels, channel)
	case n < 4:
		s.addCommand("psubscribe", "c*", "o?her")
		s.patterns = []string{"c*", "o?her"}
	case n < 6:
		s.addCommand("UNSUBSCRIBE", channel)
		s.channels = removeItem(s.channels, channel)
	case n < 7:
		s.addCommand("PUNSUBSCRIBE", "c*", "o?her", "none")
		s.patterns = nil
	case n < 8 && len(s.channels) <= 1:
		s.addLine("UNSUBSCRIBE")
		s.channels = nil
	case n < 9:
		s.addCommand("PING", s.smallValue())
	default:
		template := s.pick("GET K", "NOSUCH K", "PUBLISH ch S", "MGET K", "COMMAND GETKEYS GET K", "INFO nosuch")
		if !s.differsWithLockKeys(template) {
			s.addFromTemplate(template)
		}
	}
}

func addItem(items []string, item string) []string {
	return append(removeItem(items, item), item)
}

func removeItem(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

func (s *Stream) addReplyMode() {
	if len(s.channels)+len(s.patterns) > 0 {
		return
	}
	if s.random.IntN(2) == 0 {
		s.repliesOff = true
		s.addLine("CLIENT REPLY OFF")
		return
	}
	s.addLine("CLIENT REPLY SKIP")
	s.addFromTemplate(s.pick("GET K", "SET K V", "NOSUCH", "SELECT 1", "RPUSH K S", "COMMAND COUNT", "INFO"))
}

// encode returns a command as an array of bulk strings.
func encode(words ...string) string { return string(resp.AppendWords(nil, words...)) }

// FirstDifference describes the first difference between the replies of two servers.
func FirstDifference(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	from := max(0, at-200)
	return fmt.Sprintf("at byte %d of %d and %d: got …%.500q\nwant …%.500q", at, len(got), len(want), got[from:],
		want[from:])
}
