//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// The histories in this file cover three keys of one tag: the key that is the tag itself, and two
// more keys. Commands, transactions and scripts change several of the keys together. One history
// covers all three keys.

// usesTags reports whether the clients use keys with tags.
func (g *collectionClients) usesTags() bool { return strings.HasPrefix(g.kind, "tag") }

// tagWithLock is the kind of clients that also send LOCK and UNLOCK, which Redis does not have.
const tagWithLock = "tag+LOCK"

// callEachIfEqualScript runs the commands in its other arguments if the first key has the first
// argument as its string value. Otherwise it returns nil.
const callEachIfEqualScript = `if redis.call('type', KEYS[1]).ok ~= 'string' or redis.call('get', KEYS[1]) ~= table.remove(ARGV, 1) then return false end
` + callEachScript

// releaseIfStringScript is releaseScript for a key that may hold a list.
const releaseIfStringScript = `if redis.call('type', KEYS[1]).ok == 'string' and redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0`

// sendToTag sends one command, script or transaction. A conditional script or transaction follows a
// GET, and a WATCH if it needs one.
func (g *collectionClients) sendToTag(random *rand.Rand, client *redistest.Client, key *keyHistory, number, sentCount int) error {
	value := fmt.Sprintf("%d-%d", number, sentCount)
	steps := make([][]string, 1+random.IntN(3))
	for i := range steps {
		steps[i] = tagStep(random, key.keys, fmt.Sprint(value, ".", i))
	}
	target := key.keys[random.IntN(3)]
	d := commandRecord{client: number, words: steps[0]}
	switch random.IntN(9) {
	case 0:
		d.words = []string{"SET", target, value, "NX", "PX", longLastingMillis}
		if g.kind == tagWithLock {
			d.words, d.steps = []string{"LOCK", target, value, "PX", longLastingMillis}, [][]string{d.words}
		}
	case 1:
		d.words = []string{"SET", target, value, "NX"}
	case 2: // a key that this client has probably taken
		token := fmt.Sprintf("%d-%d", number, sentCount-1-random.IntN(4))
		d.words, d.steps, d.condition = []string{"EVAL", releaseIfStringScript, "1", target, token}, [][]string{{"DEL", target}},
			&condition{key: target, value: token, elseReply: int64(0)}
		if g.kind == tagWithLock {
			d.words = []string{"UNLOCK", target, token}
		}
	case 3:
		return g.execOnTag(client, key, commandRecord{client: number, steps: steps, multiReply: true})
	case 4: // the script may declare only some of the keys
		d.words, d.steps, d.multiReply = evalEachCommand(callEachScript, key.keys[:1+random.IntN(3)], "", steps), steps, true
	case 5, 6:
		return g.sendConditional(client, key, target, commandRecord{client: number, steps: steps, multiReply: true}, random.IntN(2) == 0)
	}
	_, err := g.do(client, key, d, d.words)
	return err
}

// sendConditional reads a key, and then executes commands if the key still has the same value: in a
// transaction, or by a script.
func (g *collectionClients) sendConditional(client *redistest.Client, key *keyHistory, target string, d commandRecord, watch bool) error {
	if watch {
		if reply, err := client.Do("WATCH", target); err != nil || reply != any("OK") {
			return err
		}
	}
	reply, err := g.do(client, key, commandRecord{client: d.client, words: []string{"GET", target}}, []string{"GET", target})
	value, isString := reply.(string)
	d.condition = &condition{key: target, value: value, mayAbort: watch}
	switch {
	case err != nil:
		return err
	case watch && (isString || reply == nil):
		return g.execOnTag(client, key, d)
	case watch:
		_, err = client.Do("UNWATCH")
		return err
	case !isString:
		return nil
	}
	keys := append([]string{target}, slices.DeleteFunc(slices.Clone(key.keys), func(k string) bool { return k == target })...)
	d.words = evalEachCommand(callEachIfEqualScript, keys, value, d.steps)
	_, err = g.do(client, key, d, d.words)
	return err
}

// execOnTag executes the steps in a transaction.
func (g *collectionClients) execOnTag(client *redistest.Client, key *keyHistory, d commandRecord) error {
	d.words = append([]string{"EXEC"}, slices.Concat(d.steps...)...)
	_, err := g.do(client, key, d, slices.Concat([][]string{{"MULTI"}}, d.steps, [][]string{{"EXEC"}})...)
	return err
}

// evalEachCommand returns an EVAL that runs steps. If argument is not empty, it precedes the steps.
func evalEachCommand(body string, keys []string, argument string, steps [][]string) []string {
	words := append([]string{"EVAL", body, strconv.Itoa(len(keys))}, keys...)
	if argument != "" {
		words = append(words, argument)
	}
	for _, step := range steps {
		words = append(append(words, strconv.Itoa(len(step))), step...)
	}
	return words
}

// tagStep returns a command that may use several keys of the tag.
func tagStep(random *rand.Rand, keys []string, value string) []string {
	order := random.Perm(len(keys))
	a, b, c := keys[order[0]], keys[order[1]], keys[order[2]]
	return pick(random,
		[]string{"SET", a, value}, []string{"SET", a, value, "PX", longLastingMillis},
		[]string{"SET", a, value, "XX", "KEEPTTL"}, []string{"GET", a},
		[]string{"RENAME", a, b}, []string{"RENAMENX", a, b}, []string{"COPY", a, b, "REPLACE"},
		[]string{"MSET", a, value, b, value}, []string{"MSETNX", a, value, b, value},
		[]string{"MGET", a, b, c}, []string{"DEL", a, b}, []string{"DEL", a}, []string{"EXISTS", a, b, c},
		[]string{"RPUSH", a, value}, []string{"RPUSH", a, value},
		[]string{"LMOVE", a, b, "LEFT", "RIGHT"}, []string{"LRANGE", a, "0", "-1"}, []string{"LPOP", a},
		[]string{"PERSIST", a}, []string{"PEXPIRE", a, longLastingMillis},
		[]string{"GETDEL", a}, []string{"TYPE", a})
}

// asSetReply replaces the reply to a LOCK by the reply to the equivalent SET.
func asSetReply(d commandRecord) commandRecord {
	if _, granted := d.reply.(int64); granted && d.words[0] == "LOCK" {
		d.reply = "OK"
	}
	return d
}

// possibleUndo returns a possible effect of a lost command that takes the lock: the lock is
// released again, at any time.
func possibleUndo(d commandRecord) (undo commandRecord, possible bool) {
	steps := d.steps
	if steps == nil {
		steps = [][]string{d.words}
	}
	if !d.unknown || len(steps) > 1 || steps[0][0] != "SET" || len(steps[0]) < 4 || steps[0][3] != "NX" {
		return commandRecord{}, false
	}
	key, value := steps[0][1], steps[0][2]
	return commandRecord{client: d.client, steps: [][]string{{"DEL", key}}, condition: &condition{key: key, value: value},
		unknown: true}, true
}

// TestHistoriesOfTags checks that every reply is one that a single Redis could have given. Ten
// clients of two proxies use the same few tags, each with three keys, by commands, scripts and
// transactions that change several of them. Meanwhile a minority of the masters is stopped,
// disconnected and killed at random.
func TestHistoriesOfTags(t *testing.T) {
	redistest.SkipShort(t)
	ops, seed := int(kit.SizeFrom(t, historyOpsEnv, defaultHistoryOps)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", ops, historyOpsEnv, seed, kit.SeedEnv)
	f := startLockKeyFleet(t, 2, "--lock-tags", "*")
	disturber := faults.StartDisturber(f, seed, lockKeyFaults()...)
	violations, undecided := runCollectionClients(t, tagWithLock, seed, ops, f.Addrs()...)
	wantNoViolations(t, tagWithLock, violations, undecided)
	faultCounts, err := disturber.Stop()
	t.Logf("the masters were disturbed: %v", faultCounts)
	kit.Must(t, err)
}

// TestTagHistoriesWithoutFaults repeats TestHistoriesOfTags without faults.
func TestTagHistoriesWithoutFaults(t *testing.T) {
	redistest.SkipShort(t)
	ops, seed := int(kit.SizeFrom(t, historyOpsEnv, defaultHistoryOps)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", ops, historyOpsEnv, seed, kit.SeedEnv)
	f := startLockKeyFleet(t, 2, "--lock-tags", "*")
	violations, undecided := runCollectionClients(t, tagWithLock, seed, ops, f.Addrs()...)
	wantNoViolations(t, tagWithLock, violations, undecided)
}
