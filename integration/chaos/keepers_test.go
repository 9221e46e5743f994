//go:build integration

package chaos

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// keepLease is longer than a run, so that kept keys are still held when the masters are compared.
const keepLease = time.Hour

// keeper is a client that sets and removes keys with long leases, with all kinds of commands. The
// masters' cells of these keys are compared at the end.
type keeper struct {
	*connection
	kept   *kept
	random *rand.Rand
	number int
	turns  int
}

// kept holds the keys of keepers.
type kept struct {
	keys []string

	mu sync.Mutex
	// known holds, for each key, the time at which the last command that got a reply was sent. At
	// that time, the key's value was known.
	known map[string]time.Duration
}

// casScript is a compare-and-set, as clients of a single Redis write it.
const casScript = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("set",KEYS[1],ARGV[2],"PX",ARGV[3]) end return false`

func (k *keeper) turn() {
	k.turns++
	key, value, lease := k.kept.keys[k.random.IntN(len(k.kept.keys))], strconv.Itoa(k.number)+"-"+strconv.Itoa(k.turns),
		millis(keepLease)
	sent := k.ledger.now()
	if k.change(key, value, lease) {
		k.kept.answered(key, sent)
	}
}

// change sends the commands of one kind of change, and reports whether the last got a reply.
func (k *keeper) change(key, value, lease string) bool {
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
		return k.all(kinds[i])
	}
	held, ok := k.do("GET", key)
	token, isHeld := held.(string)
	switch {
	case !ok || !isHeld:
		return ok
	case i == len(kinds):
		return k.all([][]string{{"UNLOCK", key, token}})
	default:
		return k.all([][]string{{"EVAL", casScript, "1", key, token, value, lease}})
	}
}

// all sends commands until one gets no reply.
func (k *keeper) all(commands [][]string) (ok bool) {
	for _, command := range commands {
		if _, ok = k.do(command...); !ok {
			k.hangUp() // also ends a WATCH or MULTI
			return false
		}
	}
	return true
}

func (k *keeper) rest() { nap(k.random, keepPause) }

func (k *kept) answered(key string, sent time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[key] = max(k.known[key], sent)
}
