package blocking

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/quorum"
)

var now = time.UnixMilli(1_700_000_000_000)

// TestParse checks the keys, the timeout, and the command on only the last key.
func TestParse(t *testing.T) {
	for _, test := range []struct {
		line, keys, kind string
		wait             time.Duration
		last             string
	}{
		{"BLPOP a 0", "a", "list", quorum.NoWaitLimit, "blpop a 0"},
		{"brpop a b a 1.5", "a b", "list", 1500 * time.Millisecond, "brpop b 1.5"},
		{"BLMOVE a a LEFT RIGHT 2", "a", "list", 2 * time.Second, "BLMOVE a a LEFT RIGHT 2"},
		{"BLMOVE a b LEFT RIGHT 2", "a", "list", 2 * time.Second, "BLMOVE a b LEFT RIGHT 2"},
		{"BRPOPLPUSH a a 3", "a", "list", 3 * time.Second, "BRPOPLPUSH a a 3"},
		{"BZPOPMIN a b 0.0001", "a b", "zset", time.Millisecond, "bzpopmin b 0.0001"},
		{"BZPOPMAX a 1e10", "a", "zset", quorum.NoWaitLimit, "bzpopmax a 1e10"},
	} {
		r, errReply := parse(strings.Fields(test.line), now)
		if errReply != nil {
			t.Errorf("%s: %s", test.line, errReply.Str)
			continue
		}
		last := strings.Join(r.wordsForKey(r.keys[len(r.keys)-1]), " ")
		if strings.Join(r.keys, " ") != test.keys || r.kind != test.kind || r.wait != test.wait || last != test.last {
			t.Errorf("%s: %q of kind %s for %v, and %q", test.line, r.keys, r.kind, r.wait, last)
		}
	}
}

// TestTooManyKeys checks that parse refuses a command with too many keys for one read.
func TestTooManyKeys(t *testing.T) {
	words := []string{"blpop"}
	for i := range program.MaxKeys + 1 {
		words = append(words, strings.Repeat("k", i+1))
	}
	for text, words := range map[string][]string{
		program.TooManyKeys(program.MaxKeys + 1): append(words, "0"),
	} {
		if _, errReply := parse(words, now); errReply == nil || errReply.Str != text {
			t.Errorf("%s of %d words: %+v, want %s", words[0], len(words), errReply, text)
		}
	}
}

// TestEmptyTarget checks that a key with an empty name can be the target of a move.
func TestEmptyTarget(t *testing.T) {
	r, errReply := parse([]string{"brpoplpush", "k", "", "0"}, now)
	if errReply != nil || !r.hasTarget || r.target != "" {
		t.Errorf("%+v, %+v", r, errReply)
	}
}

// FuzzParse checks that parse also accepts an accepted command with only one of its keys, and
// returns the same timeout. On an absent key, the command must find nothing.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"blpop a b 0", "brpop a 1e3", "blmove a a left right 0", "brpoplpush a a 1",
		"bzpopmin a -1", "bzpopmax a b nan",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		name := syntax.Lower(words[0])
		if !slices.Contains([]string{"blpop", "brpop", "blmove", "brpoplpush", "bzpopmin", "bzpopmax"}, name) ||
			!keyspace.Fits(name, len(words)) {
			t.Skip()
		}
		r, errReply := parse(words, now)
		if errReply != nil {
			if errReply.Kind != keyspace.Error {
				t.Fatalf("%q: %+v", words, errReply)
			}
			return
		}
		if len(r.keys) == 0 || r.wait == 0 || r.wait < quorum.NoWaitLimit {
			t.Fatalf("%q: keys %q, for %v", words, r.keys, r.wait)
		}
		for _, key := range r.keys {
			single, errReply := parse(r.wordsForKey(key), now)
			if errReply != nil || !slices.Equal(single.keys, []string{key}) || single.wait != r.wait ||
				single.kind != r.kind {
				t.Fatalf("%q alone: %q, %+v, %+v", words, r.wordsForKey(key), single, errReply)
			}
			if has, errReply := r.hasElement(key, quorum.Snapshot{}, now); has || errReply != nil {
				t.Fatalf("%q finds an element in an absent key: %+v", words, errReply)
			}
		}
	})
}
