package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/randomcommands"
	"redlock-proxy/internal/redistest"
)

// formatReply formats a reply as RESP2 or RESP3. It sorts the elements at the depth unorderedDepth.
func formatReply(r keyspace.Reply, proto, unorderedDepth int) string {
	if proto == 2 {
		r = r.InRESP2()
	}
	switch r.Kind {
	case keyspace.Array, keyspace.Map, keyspace.Set, keyspace.Pairs:
		parts := make([]string, len(r.Elems))
		for i, e := range r.Elems {
			parts[i] = formatReply(e, proto, unorderedDepth-1)
		}
		if r.Kind == keyspace.Pairs {
			r.Kind = keyspace.Array
			parts = joinPairs(parts, "[", "]")
		}
		if r.Kind == keyspace.Map {
			parts = joinPairs(parts, "", "")
		}
		if unorderedDepth == 0 || r.Kind == keyspace.Set {
			slices.Sort(parts)
		}
		return fmt.Sprintf("%d%v", r.Kind, parts)
	case keyspace.Double:
		if r.Str != "" { // the text that Redis sent
			return "," + r.Str
		}
		return "," + r.Digits()
	case keyspace.NilArray:
		if proto == 3 {
			return "nil"
		}
		return "nil array"
	case keyspace.Nil:
		return "nil"
	case keyspace.Int:
		return strconv.FormatInt(r.Int, 10)
	}
	return fmt.Sprintf("%d%q", r.Kind, r.Str)
}

// joinPairs joins each pair of parts, and writes before and after around it.
func joinPairs(parts []string, before, after string) (pairs []string) {
	for pair := range slices.Chunk(parts, 2) {
		pairs = append(pairs, before+strings.Join(pair, " ")+after)
	}
	if before == "[" {
		for i, p := range pairs {
			pairs[i] = fmt.Sprintf("%d%s", keyspace.Array, p)
		}
	}
	return pairs
}

// sequenceCount is the number of random sequences of commands in each protocol.
const sequenceCount = 640

// TestCollectionsLikeRedis compares the replies to random commands on collections with the replies
// of a real Redis, in both protocols. In the end it compares the keys.
func TestCollectionsLikeRedis(t *testing.T) {
	server := startRedis(t)
	for proto := 2; proto <= 3; proto++ {
		server.do(t, "HELLO", strconv.Itoa(proto))
		for seed := range uint64(redistest.SampleCount(sequenceCount)) {
			random := randomcommands.Generator{Rand: rand.New(rand.NewPCG(uint64(proto), seed)), Keys: []string{"a", "b", "c"}}
			themes := randomcommands.TemplateLists()
			w, theme := storedKeys{}, themes[seed%uint64(len(themes))]
			server.do(t, "FLUSHALL")
			var history []string
			for range 60 {
				words := random.Next(theme)
				history = append(history, fmt.Sprintf("%q", words))
				compare(t, w, server, words, proto, history)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			for _, words := range [][]string{{"type"}, {"get"}, {"hgetall"}, {"lrange", "0", "-1"}, {"smembers"},
				{"zrange", "0", "-1", "withscores"}} {
				for _, key := range []string{"a", "b", "c"} {
					compare(t, w, server, slices.Insert(slices.Clone(words), 1, key), proto, append(history, "in the end"))
				}
			}
		}
	}
}

func compare(t *testing.T, w storedKeys, server *redisConn, words []string, proto int, history []string) {
	t.Helper()
	ownReply, redisReply := w.do(t, words...), server.doWithoutWaiting(t, words...)
	unordered := -1
	if randomcommands.IsUnordered(words) {
		// A reply to a scan has the elements in its second part.
		unordered = strings.Count(words[0], "scan")
	}
	if a, b := formatReply(ownReply, proto, unordered), formatReply(redisReply, proto, unordered); a != b {
		t.Errorf("RESP%d: %s\n%q\n ours %s\nredis %s", proto, strings.Join(history, "\n"), words, a, b)
	}
}

// doWithoutWaiting runs a command. A command that may wait runs in a transaction, where it does not
// wait.
func (r *redisConn) doWithoutWaiting(t *testing.T, words ...string) keyspace.Reply {
	t.Helper()
	if !randomcommands.MayBlock(words) {
		return r.do(t, words...)
	}
	r.do(t, "MULTI")
	queued := r.do(t, words...)
	results := r.do(t, "EXEC")
	if queued.Kind == keyspace.Error {
		return queued
	}
	return results.Elems[0]
}

// TestScanOfLongFields checks that a scan either matches long fields in linear time, or fails.
func TestScanOfLongFields(t *testing.T) {
	field := strings.Repeat("a", 900_000)
	for pattern, want := range map[string]string{
		"*" + field[:450_000] + "b*":                         "",
		"*" + strings.Repeat("?", 450_000) + "b*":            "ERR pattern too complex: too many ? or [] after a * for a name of this length; use a simpler pattern",
		"*" + field[:450_000] + "*":                          field,
		"*[a-c]" + strings.Repeat("a", 50) + "*" + field[:9]: field,
	} {
		s := keyspace.NewSnapshot(testTime)
		s.Put("h", keyspace.Entry{})
		if _, err := s.Do([]string{"hset", "h", field, "v"}); err != nil {
			t.Fatal(err)
		}
		got, err := s.Do([]string{"hscan", "h", "0", "match", pattern})
		switch {
		case err != nil:
			t.Error(err)
		case got.Kind == keyspace.Error || strings.HasPrefix(want, "ERR"):
			if got.Str != want {
				t.Errorf("%.20s: %.100s", pattern, got.Str)
			}
		case len(got.Elems[1].Elems) == 0 && want == "":
		case len(got.Elems[1].Elems) != 2 || got.Elems[1].Elems[0].Str != want:
			t.Errorf("%.20s: %d elements", pattern, len(got.Elems[1].Elems))
		}
	}
}
