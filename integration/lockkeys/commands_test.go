//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// commandGenerator generates a conversation about two lock keys. The same seed gives the same
// conversation, except for absolute times.
type commandGenerator struct {
	random      *rand.Rand
	keys        []string
	usedKeys    []string // the keys of the next steps
	scripts     []luaScript
	uniqueCount int
	leaseCount  int
}

// nextSteps returns the next command, or several related commands, such as a transaction. Most
// scripts and transactions use one of the keys, because the proxy refuses many that use both.
func (k *commandGenerator) nextSteps() []step {
	k.usedKeys = k.keys
	n := k.random.IntN(100)
	isProgram := n >= 60 && n < 95
	if isProgram && k.random.IntN(4) > 0 {
		k.usedKeys = []string{k.key()}
	}
	steps := k.stepsFor(n)
	for i := range steps {
		steps[i].refusable = len(k.usedKeys) > 1 && (isProgram || strings.EqualFold(steps[i].words[0], "MSET"))
	}
	return steps
}

func (k *commandGenerator) stepsFor(n int) []step {
	switch {
	case n < 60:
		return []step{k.command()}
	case n < 85:
		return []step{k.script()}
	case n < 95:
		return k.transaction()
	case n < 98:
		return []step{{words: []string{"SELECT", strconv.Itoa(k.random.IntN(2))}}}
	default:
		return []step{{words: pick(k.random, []string{"PING"}, []string{"ECHO", "x"},
			[]string{"SCRIPT", "EXISTS", strings.Repeat("0", 40)},
			[]string{"EVALSHA", strings.Repeat("0", 40), "1", k.key()}, []string{"UNWATCH"}, []string{"EXEC"},
			[]string{"DISCARD"})}}
	}
}

// pick returns a random one of its arguments.
func pick[T any](random *rand.Rand, items ...T) T { return items[random.IntN(len(items))] }

func (k *commandGenerator) key() string { return pick(k.random, k.usedKeys...) }

// value returns mostly one of a few values, so that comparisons often succeed.
func (k *commandGenerator) value() string {
	if k.random.IntN(3) > 0 {
		return pick(k.random, "a", "b", "token")
	}
	return pick(k.random, "", "10", "-3", "3.5", " 5", "9223372036854775807", "\x00\xff\r\n", strings.Repeat("long", 50))
}

// number returns a number as text, or almost a number.
func (k *commandGenerator) number() string {
	if k.random.IntN(2) == 0 {
		return strconv.Itoa(k.random.IntN(12) - 3)
	}
	return pick(k.random, "1", "0", "-1", "9223372036854775807", "-9223372036854775808", "x", "1.5", "")
}

// lease returns a TTL in a unit, mostly a valid one. It is at most a day. Two long TTLs differ so
// much that a short delay cannot change their order.
func (k *commandGenerator) lease(unit string) string {
	if k.random.IntN(12) == 0 {
		return pick(k.random, "0", "-1", "x", "1.5", "", "-9223372036854775808")
	}
	k.leaseCount++
	seconds := int64(minSeconds + 4*toleranceSeconds*(k.leaseCount%5000))
	switch strings.ToUpper(unit) {
	case "EX":
		return strconv.FormatInt(seconds, 10)
	case "PX":
		return strconv.FormatInt(seconds*1000, 10)
	case "EXAT":
		return strconv.FormatInt(time.Now().Unix()+seconds, 10)
	default:
		return strconv.FormatInt(time.Now().UnixMilli()+seconds*1000, 10)
	}
}

// anyCase spells a word in one of three ways.
func (k *commandGenerator) anyCase(word string) string {
	switch k.random.IntN(4) {
	case 0:
		return strings.ToLower(word)
	case 1:
		return word[:1] + strings.ToLower(word[1:])
	default:
		return strings.ToUpper(word)
	}
}

// expiry returns an option of SET and GETEX with its argument.
func (k *commandGenerator) expiry() []string {
	unit := pick(k.random, "EX", "PX", "PX", "EXAT", "PXAT")
	return []string{k.anyCase(unit), k.lease(unit)}
}

// plainCommands returns commands with placeholders: k for a key, v for a value, n for a number.
func plainCommands() []string {
	return []string{
		"GET k", "GET k", "STRLEN k", "EXISTS k", "EXISTS k k", "TYPE k", "TOUCH k k", "SETNX k v", "SETNX k v",
		"GETSET k v", "GETDEL k",
		"GETRANGE k n n", "SUBSTR k n n", "DEL k", "DEL k k", "UNLINK k", "PERSIST k", "MSET k v", "MSET k v k v",
		"MSETNX k v k v", "MSETNX k v",
		"MGET k k", "MGET k", "INCR k", "DECR k", "INCRBY k n", "DECRBY k n", "APPEND k v",
	}
}

// command generates one command, sometimes with one word too few or too many.
func (k *commandGenerator) command() step {
	var s step
	switch n := k.random.IntN(20); {
	case n < 6:
		s.words = k.setCommand()
	case n < 13:
		s.words = k.plainCommand()
	case n < 15:
		s.words = k.expireCommand()
	case n < 17:
		s.words, s.hasTimes = []string{k.anyCase(pick(k.random, "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME")), k.key()}, true
	case n < 18:
		unit := pick(k.random, "EX", "PX")
		s.words = []string{map[string]string{"EX": "SETEX", "PX": "PSETEX"}[unit], k.key(), k.lease(unit), k.value()}
	case n < 19:
		s.words = append([]string{k.anyCase("GETEX"), k.key()}, pick(k.random, nil, []string{"PERSIST"}, k.expiry(),
			k.expiry())...)
	default:
		return k.newerCommand()
	}
	switch k.random.IntN(40) {
	case 0:
		s.words = s.words[:len(s.words)-1]
		if len(s.words) < 2 {
			s.words = append(s.words, k.key())
		}
	case 1:
		s.words = append(s.words, k.extraWord(s.words[0]))
	}
	return s
}

// extraWord returns a superfluous word: a key if the command accepts any number of keys.
func (k *commandGenerator) extraWord(name string) string {
	switch strings.ToUpper(name) {
	case "DEL", "UNLINK", "EXISTS", "TOUCH", "MGET", "MSET", "MSETNX":
		return k.key()
	default:
		return pick(k.random, "x", "NX", "PX")
	}
}

func (k *commandGenerator) plainCommand() []string {
	words := strings.Fields(pick(k.random, plainCommands()...))
	for i, word := range words {
		switch word {
		case "k":
			words[i] = k.key()
		case "v":
			words[i] = k.value()
		case "n":
			words[i] = k.number()
		default:
			words[i] = k.anyCase(word)
		}
	}
	return words
}

// setCommand returns a SET with options in any order. Some options exclude each other.
func (k *commandGenerator) setCommand() []string {
	var options [][]string
	for _, option := range []struct {
		oneIn int
		words []string
	}{{3, []string{"NX"}}, {5, []string{"XX"}}, {6, []string{"GET"}}, {8, []string{"KEEPTTL"}}, {2, k.expiry()},
		{40, k.expiry()}} {
		if k.random.IntN(option.oneIn) == 0 {
			option.words[0] = k.anyCase(option.words[0])
			options = append(options, option.words)
		}
	}
	k.random.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
	words := []string{k.anyCase("SET"), k.key(), k.value()}
	for _, option := range options {
		words = append(words, option...)
	}
	return words
}

func (k *commandGenerator) expireCommand() []string {
	unit := pick(k.random, "EX", "PX", "EXAT", "PXAT")
	name := map[string]string{"EX": "EXPIRE", "PX": "PEXPIRE", "EXAT": "EXPIREAT", "PXAT": "PEXPIREAT"}[unit]
	words := []string{k.anyCase(name), k.key(), k.lease(unit)}
	for _, option := range []string{"NX", "XX", "GT", "LT"} {
		if k.random.IntN(8) == 0 {
			words = append(words, k.anyCase(option))
		}
	}
	return words
}

// newerCommand returns a command that is newer than Redis 7.0, with an equivalent script for Redis
// 7.0.
func (k *commandGenerator) newerCommand() step {
	key, expected, value := k.key(), k.value(), k.value()
	compare := func(sign, then, otherwise string) string {
		return fmt.Sprintf("local v = redis.call('get', KEYS[1]) if v %s ARGV[1] then return %s end return %s", sign,
			then, otherwise)
	}
	remove, write := "redis.call('del', KEYS[1])", "redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3])"
	eval := func(script string, args ...string) []string {
		return append([]string{"EVAL", script, "1", key}, args...)
	}
	lease := strconv.Itoa(minMillis)
	switch k.random.IntN(5) {
	case 0:
		return step{words: []string{"DELIFEQ", key, expected}, redisWords: eval(compare("==", remove, "0"), expected)}
	case 1:
		return step{words: []string{"DELEX", key, k.anyCase("IFEQ"), expected},
			redisWords: eval(compare("==", remove, "0"), expected)}
	case 2:
		return step{words: []string{"DELEX", key, "IFNE", expected}, redisWords: eval(compare("~=", remove, "0"), expected)}
	case 3:
		return step{words: []string{"SET", key, value, k.anyCase("IFEQ"), expected, "PX", lease},
			redisWords: eval(compare("==", write, "false"), expected, value, lease)}
	default:
		return step{words: []string{"SET", key, value, "PX", lease, "IFNE", expected},
			redisWords: eval(compare("~=", write, "false"), expected, value, lease)}
	}
}

// transaction returns MULTI, some commands and EXEC, often after a WATCH and further commands.
// Between WATCH and EXEC, the watched keys do not change, or get a value that they never had. The
// proxy does not notice changes that keep the value, such as an EXPIRE.
func (k *commandGenerator) transaction() []step {
	var steps []step
	add := func(words ...string) { steps = append(steps, step{words: words}) }
	if k.random.IntN(3) > 0 {
		add(k.anyCase("WATCH"), k.key())
		add("GET", k.key())
		switch k.random.IntN(6) {
		case 0:
			add("UNWATCH")
		case 1:
			add("STRLEN", k.key())
		case 2:
			k.uniqueCount++
			add("SET", k.key(), fmt.Sprintf("unique %d", k.uniqueCount))
		}
	}
	add(k.anyCase("MULTI"))
	hasTimes := false
	for i := range k.random.IntN(4) {
		s := k.command()
		if k.random.IntN(5) == 0 {
			s = k.invocation()
		}
		if i > 0 && k.random.IntN(40) == 0 {
			s = step{words: pick(k.random, []string{"MULTI"}, []string{"WATCH", k.key()})}
		}
		hasTimes = hasTimes || s.hasTimes
		s.hasTimes = false // the reply is QUEUED
		steps = append(steps, s)
	}
	end := pick(k.random, "EXEC", "EXEC", "EXEC", "EXEC", "EXEC", "DISCARD")
	return append(steps, step{words: []string{k.anyCase(end)}, hasTimes: hasTimes})
}

// script generates a command that runs or loads one of the scripts.
func (k *commandGenerator) script() step {
	if k.random.IntN(8) == 0 {
		return step{words: []string{"SCRIPT", k.anyCase("LOAD"), pick(k.random, k.scripts...).body}}
	}
	return k.invocation()
}

// invocation generates a command that runs one of the scripts, with generated arguments.
func (k *commandGenerator) invocation() step {
	s := pick(k.random, k.scripts...)
	words := []string{pick(k.random, "EVAL", "eval"), s.body}
	if k.random.IntN(2) == 0 {
		words = []string{"EVALSHA", s.sha}
	}
	words = append(words, "2", k.key(), k.key(), k.value(), k.value(), strconv.Itoa(minMillis*(1+k.random.IntN(5))))
	return step{words: words, hasTimes: s.hasTimes}
}
