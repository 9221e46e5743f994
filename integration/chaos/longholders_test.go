//go:build integration

package chaos

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// longLease is longer than a run, so that the keys of longHolder clients are still held when the
// masters are compared.
const longLease = time.Hour

// longHolder is a client that sets and removes keys with long leases, with all kinds of commands.
// At the end, the test compares the masters' cells of these keys.
type longHolder struct {
	*connection
	keys      *longKeys
	random    *rand.Rand
	number    int
	turnCount int
}

// longKeys holds the keys of the longHolder clients.
type longKeys struct {
	keys []string

	mu sync.Mutex
	// knownAt holds, for each key, the time at which the last change began whose last command got
	// a reply that is not an error. After that time, the key's value was known.
	knownAt map[string]time.Duration
}

// casScript is a compare-and-set, as clients of a single Redis write it.
const casScript = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("set",KEYS[1],ARGV[2],"PX",ARGV[3]) end return false`

func (k *longHolder) runTurn() {
	k.turnCount++
	key, value, lease := k.keys.keys[k.random.IntN(len(k.keys.keys))], strconv.Itoa(k.number)+"-"+strconv.Itoa(k.turnCount),
		millis(longLease)
	sent := k.ledger.now()
	if k.changeKey(key, value, lease) {
		k.keys.recordReply(key, sent)
	}
}

// changeKey sends the commands of one kind of change. It reports whether the last command got a
// reply that is not an error.
func (k *longHolder) changeKey(key, value, lease string) bool {
	kinds := [][][]string{
		{{"LOCK", key, value, "PX", lease}},
		{{"SET", key, value, "NX", "PX", lease}},
		{{"SET", key, value, "PX", lease}},
		{{"SET", key, value, "XX", "PX", lease}},
		{{"GETSET", key, value}},
		{{"WATCH", key}, {"MULTI"}, {"SET", key, value, "PX", lease}, {"EXEC"}},
		{{"DEL", key}},
	}
	i := k.random.IntN(len(kinds) + 2)
	if i < len(kinds) {
		return k.sendAll(kinds[i])
	}
	reply, ok := k.do("GET", key)
	token, isText := reply.(string)
	switch {
	case !ok || !isText:
		return ok
	case i == len(kinds):
		return k.sendAll([][]string{{"UNLOCK", key, token}})
	default:
		return k.sendAll([][]string{{"EVAL", casScript, "1", key, token, value, lease}})
	}
}

// sendAll sends commands until one gets an error or no reply.
func (k *longHolder) sendAll(commands [][]string) (ok bool) {
	for _, command := range commands {
		if _, ok = k.do(command...); !ok {
			k.disconnect() // also ends a WATCH or MULTI
			return false
		}
	}
	return true
}

func (k *longHolder) waitForNextTurn() { sleepUpTo(k.random, longHolderPause) }

func (k *longKeys) recordReply(key string, sent time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.knownAt[key] = max(k.knownAt[key], sent)
}
