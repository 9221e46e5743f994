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

// Histories of the keys of one tag: the key that is the tag itself, and two more. Commands,
// transactions and scripts change several of them together. One history covers all three keys.

// isOfTags reports whether the clients use keys with tags.
func (g *gathering) isOfTags() bool { return strings.HasPrefix(g.kind, "tag") }

// lockingTags is the kind of clients that also send LOCK and UNLOCK, which Redis does not have.
const lockingTags = "tag+LOCK"

// compareAnd runs the commands in its other arguments if the first key has the first argument as
// its string value, else it returns nil.
const compareAnd = `if redis.call('type', KEYS[1]).ok ~= 'string' or redis.call('get', KEYS[1]) ~= table.remove(ARGV, 1) then return false end
` + severally

// releaseIfString is releaseIfOwn for a key that may have a list.
const releaseIfString = `if redis.call('type', KEYS[1]).ok == 'string' and redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0`

// turnOfTags sends one command, or one transaction, after WATCH and GET if it needs them.
func (g *gathering) turnOfTags(random *rand.Rand, client *redistest.Client, key *keyHistory, number, sent int) error {
	own := fmt.Sprintf("%d-%d", number, sent)
	steps := make([][]string, 1+random.IntN(3))
	for i := range steps {
		steps[i] = tagStep(random, key.keys, fmt.Sprint(own, ".", i))
	}
	one := key.keys[random.IntN(3)]
	d := deed{client: number, words: steps[0]}
	switch random.IntN(9) {
	case 0:
		d.words = []string{"SET", one, own, "NX", "PX", longLastingMillis}
		if g.kind == lockingTags {
			d.words, d.steps = []string{"LOCK", one, own, "PX", longLastingMillis}, [][]string{d.words}
		}
	case 1:
		d.words = []string{"SET", one, own, "NX"}
	case 2: // a key that this client has probably taken
		token := fmt.Sprintf("%d-%d", number, sent-1-random.IntN(4))
		d.words, d.steps, d.only = []string{"EVAL", releaseIfString, "1", one, token}, [][]string{{"DEL", one}},
			&condition{key: one, value: token, otherwise: int64(0)}
		if g.kind == lockingTags {
			d.words = []string{"UNLOCK", one, token}
		}
	case 3:
		return g.transactOfTags(client, key, deed{client: number, steps: steps, several: true})
	case 4: // only the first keys are declared
		d.words, d.steps, d.several = evalSeverally(severally, key.keys[:1+random.IntN(3)], "", steps), steps, true
	case 5, 6:
		return g.conditional(client, key, one, deed{client: number, steps: steps, several: true}, random.IntN(2) == 0)
	}
	_, err := g.do(client, key, d, d.words)
	return err
}

// conditional reads a key, and then executes a deed if the key still has the same value: in a
// transaction, or by a script.
func (g *gathering) conditional(client *redistest.Client, key *keyHistory, one string, d deed, watch bool) error {
	if watch {
		if reply, err := client.Do("WATCH", one); err != nil || reply != any("OK") {
			return err
		}
	}
	reply, err := g.do(client, key, deed{client: d.client, words: []string{"GET", one}}, []string{"GET", one})
	value, is := reply.(string)
	d.only = &condition{key: one, value: value, may: watch}
	switch {
	case err != nil:
		return err
	case watch && (is || reply == nil):
		return g.transactOfTags(client, key, d)
	case watch:
		_, err = client.Do("UNWATCH")
		return err
	case !is:
		return nil
	}
	keys := append([]string{one}, slices.DeleteFunc(slices.Clone(key.keys), func(k string) bool { return k == one })...)
	d.words = evalSeverally(compareAnd, keys, value, d.steps)
	_, err = g.do(client, key, d, d.words)
	return err
}

// transactOfTags executes the steps in a transaction.
func (g *gathering) transactOfTags(client *redistest.Client, key *keyHistory, d deed) error {
	d.words = append([]string{"EXEC"}, slices.Concat(d.steps...)...)
	_, err := g.do(client, key, d, slices.Concat([][]string{{"MULTI"}}, d.steps, [][]string{{"EXEC"}})...)
	return err
}

// evalSeverally returns an EVAL that runs steps. If argument is not empty, it precedes the steps.
func evalSeverally(body string, keys []string, argument string, steps [][]string) []string {
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
func tagStep(random *rand.Rand, keys []string, own string) []string {
	order := random.Perm(len(keys))
	a, b, c := keys[order[0]], keys[order[1]], keys[order[2]]
	return pick(random,
		[]string{"SET", a, own}, []string{"SET", a, own, "PX", longLastingMillis},
		[]string{"SET", a, own, "XX", "KEEPTTL"}, []string{"GET", a},
		[]string{"RENAME", a, b}, []string{"RENAMENX", a, b}, []string{"COPY", a, b, "REPLACE"},
		[]string{"MSET", a, own, b, own}, []string{"MSETNX", a, own, b, own},
		[]string{"MGET", a, b, c}, []string{"DEL", a, b}, []string{"DEL", a}, []string{"EXISTS", a, b, c},
		[]string{"RPUSH", a, own}, []string{"RPUSH", a, own},
		[]string{"LMOVE", a, b, "LEFT", "RIGHT"}, []string{"LRANGE", a, "0", "-1"}, []string{"LPOP", a},
		[]string{"PERSIST", a}, []string{"PEXPIRE", a, longLastingMillis},
		[]string{"GETDEL", a}, []string{"TYPE", a})
}

// asPlain replaces the reply to a LOCK by the reply to the equivalent SET.
func asPlain(d deed) deed {
	if _, granted := d.reply.(int64); granted && d.words[0] == "LOCK" {
		d.reply = "OK"
	}
	return d
}

// undoneAfter returns a possible effect of a lost take: the lock is released again, at any time.
func undoneAfter(d deed) (back deed, may bool) {
	steps := d.steps
	if steps == nil {
		steps = [][]string{d.words}
	}
	if !d.lost || len(steps) > 1 || steps[0][0] != "SET" || len(steps[0]) < 4 || steps[0][3] != "NX" {
		return deed{}, false
	}
	key, value := steps[0][1], steps[0][2]
	return deed{client: d.client, steps: [][]string{{"DEL", key}}, only: &condition{key: key, value: value},
		lost: true}, true
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
	disturber := faults.StartDisturber(f, seed, lockKeyDisturbances()...)
	wrong, undecided := gather(t, lockingTags, seed, ops, f.Addrs()...)
	wantExplained(t, lockingTags, wrong, undecided)
	done, err := disturber.Stop()
	t.Logf("the masters were disturbed: %v", done)
	kit.Must(t, err)
}

// TestHistoriesOfTagsUndisturbed repeats TestHistoriesOfTags without faults.
func TestHistoriesOfTagsUndisturbed(t *testing.T) {
	redistest.SkipShort(t)
	ops, seed := int(kit.SizeFrom(t, historyOpsEnv, defaultHistoryOps)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", ops, historyOpsEnv, seed, kit.SeedEnv)
	f := startLockKeyFleet(t, 2, "--lock-tags", "*")
	wrong, undecided := gather(t, lockingTags, seed, ops, f.Addrs()...)
	wantExplained(t, lockingTags, wrong, undecided)
}
