package spec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/syntax"
)

// placesOf returns the keys of a command according to the table. It returns nil for a command
// without a rule.
func placesOf(words ...string) []string {
	args := syntax.Bytes(words)
	rule := KeysOf(args[0])
	if rule == nil {
		return nil
	}
	places, known := rule.Places(args, len(args))
	if !known {
		panic("unknown, with all words given")
	}
	keys := []string{}
	for i := range places.All() {
		keys = append(keys, words[i])
	}
	slices.Sort(keys)
	return keys
}

// movableKeySamples lists commands with movable keys.
var movableKeySamples = map[string][]string{
	"sort": {"sort a", "sort a by b get c get d limit 0 1 store e", "sort a store b store c",
		"sort a get store store b", "sort a store", "sort a LIMIT 1 store STORE z"},
	"sort_ro": {"sort_ro a by b get c"},
	"georadius": {"georadius a 1 2 3 m", "georadius a 1 2 3 m store b", "georadius a 1 2 3 m STOREDIST b",
		"georadius a 1 2 3 m store b storedist c count 1"},
	"georadiusbymember": {"georadiusbymember a m 3 m withcoord", "georadiusbymember a m 3 m count 1 store b"},
	"xread":             {"xread streams a 0", "xread count 1 block 2 streams a b 0 0", "XREAD STREAMS streams b 0 0"},
	"xreadgroup":        {"xreadgroup group g c streams a >", "xreadgroup group streams c count 2 noack STREAMS a b > 0"},
	"migrate": {"migrate h 1 a 0 5", "migrate h 1 a 0 5 copy replace auth keys",
		"migrate h 1 '' 0 5 keys a b", "migrate h 1 '' 0 5 auth2 keys keys KEYS a b"},
	"eval":    {"eval s 0", "eval s 0 a", "eval s 1 a b", "EVAL s 3 a b c d"},
	"evalsha": {"evalsha s 2 a b c"}, "eval_ro": {"eval_ro s 1 a"}, "evalsha_ro": {"evalsha_ro s 1 a"},
	"fcall": {"fcall f 0 a", "fcall f 2 a b c"}, "fcall_ro": {"fcall_ro f 1 a"},
	"zunion": {"zunion 2 a b", "zunion 1 a weights 3"}, "zinter": {"zinter 2 a b"}, "zdiff": {"zdiff 2 a b withscores"},
	"zintercard": {"zintercard 2 a b limit 1"}, "sintercard": {"sintercard 3 a b c limit 1"},
	"zunionstore": {"zunionstore d 2 a b", "zunionstore d 1 a weights 3"}, "zinterstore": {"zinterstore d 2 a b"},
	"zdiffstore": {"zdiffstore d 1 a"},
	"lmpop":      {"lmpop 2 a b left"}, "zmpop": {"zmpop 1 a min count 2"}, "blmpop": {"blmpop 1 2 a b left"},
	"bzmpop": {"bzmpop 1 1 a min"},
}

// TestKeysLikeRedis checks that every command of a real Redis with keys is in the table,
// with the keys that Redis itself finds.
func TestKeysLikeRedis(t *testing.T) {
	server := startRedis(t)
	checked := 0
	for _, c := range realCommands(t, server) {
		name := strings.Join(c.words, " ")
		if c.words[0] == "ssubscribe" || c.words[0] == "sunsubscribe" || c.words[0] == "spublish" {
			continue // channels
		}
		if rule := KeysOf([]byte(c.words[0])); rule == nil {
			if c.hasKeys || c.hasMovableKeys {
				t.Errorf("%s is missing", name)
			}
			continue
		}
		samples := movableKeySamples[name]
		if c.hasMovableKeys && len(samples) == 0 {
			t.Errorf("%s has no sample", name)
		}
		for more := range 6 {
			words := slices.Clone(c.words)
			for i := range max(c.arity, -c.arity) - len(words) + more {
				words = append(words, fmt.Sprintf("k%d", i))
			}
			if !c.hasMovableKeys && (more == 0 || c.arity < 0) {
				samples = append(samples, strings.Join(words, " "))
			}
		}
		for _, sample := range samples {
			words := strings.Split(strings.ReplaceAll(sample, "''", ""), " ")
			getKeys := []any{"COMMAND", "GETKEYS"}
			for _, w := range words {
				getKeys = append(getKeys, w)
			}
			want, err := server.Do(t.Context(), getKeys...).StringSlice()
			slices.Sort(want)
			switch got := placesOf(words...); {
			case err == nil, strings.Contains(err.Error(), "no key arguments"):
				checked++
				if !slices.Equal(got, want) {
					t.Errorf("%q: %q, in Redis %q", sample, got, want)
				}
			case !strings.Contains(err.Error(), "Invalid"):
				t.Errorf("%q: %s", sample, err)
			}
		}
	}
	if checked < 400 {
		t.Errorf("only %d commands were compared", checked)
	}
}

// TestKeysOfLaterCommands checks the keys of commands that the tested Redis may not
// have, and of words that COMMAND GETKEYS rejects.
func TestKeysOfLaterCommands(t *testing.T) {
	for _, c := range []struct{ command, keys string }{
		{"GET", ""},
		{"PING a", "none"},
		{"nosuch a", "none"},
		{"DELEX a IFEQ v", "a"},
		{"DELIFEQ a v", "a"},
		{"MSETEX 2 a 1 b 2 NX PX 5", "a b"},
		{"HGETEX a FIELDS 1 f", "a"},
		{"XREADGROUP GROUP g c CLAIM 5 STREAMS a >", "a"},
		{"JSON.MGET a b $", "a b"},
		{"JSON.MSET a $ 1 b $ 2", "a b"},
		{"TS.MADD a 1 1 b 2 2", "a b"},
		{"TDIGEST.MERGE d 2 a b", "a b d"},
		{"DEBUG OBJECT a", "a"},
		{"DEBUG SLEEP 0", ""},
		{"OBJECT HELP", ""},
		{"OBJECT", ""},
		{"EVAL s", ""},
		{"EVAL s x a", ""},
		{"EVAL s -1 a", ""},
		{"EVAL s 9 a b", "a b"},
		{"EVAL s 9223372036854775807 a", "a"},
		{"XREAD STREAMS", ""},
		{"XREAD COUNT", ""},
		{"SORT a STORE", "a"},
	} {
		want := strings.Fields(c.keys)
		got := placesOf(strings.Split(c.command, " ")...)
		if (got == nil) != (c.keys == "none") || got != nil && !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.command, got, want)
		}
	}
}

// TestKeyPlacesFromTheFirstWords checks that Places finds the same keys from the first words as
// from all words, if the first words determine them. Has, Last and All must agree.
func TestKeyPlacesFromTheFirstWords(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var names []string
	for c := range All() {
		if c.Keys != nil {
			names = append(names, c.Name)
		}
	}
	pieces := []string{"0", "1", "2", "3", "a", "b", "store", "STREAMS", "keys", "", "usage", "encoding", "get",
		"group"}
	for range 20_000 {
		words := []string{names[random.IntN(len(names))]}
		for range random.IntN(9) {
			words = append(words, pieces[random.IntN(len(pieces))])
		}
		args := syntax.Bytes(words)
		rule := KeysOf(args[0])
		whole, _ := rule.Places(args, len(args))
		last := -1
		found := slices.Sorted(whole.All())
		for i := range len(words) + 2 {
			if whole.Has(i) {
				last = i
			}
			if whole.Has(i) != slices.Contains(found, i) || whole.Has(i) && (i == 0 || i >= len(words)) {
				t.Errorf("%q: Has(%d) is %v among %v", words, i, whole.Has(i), found)
			}
		}
		if got := whole.Last(); got != last {
			t.Errorf("%q: the last key is %d, want %d", words, got, last)
		}
		for n := 1; n < len(args); n++ {
			if part, known := rule.Places(args[:n], len(args)); known && part != whole {
				t.Errorf("%q: the first %d words tell %v, all %v", words, n, part, whole)
			}
		}
	}
}
