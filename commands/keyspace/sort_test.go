package keyspace_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/keyspace"
)

// examples are conversations about SORT. They are compared with a real Redis, in both protocols.
var examples = []string{
	"RPUSH l 10 9 1 2.5 1.0 0x10 -inf inf  7|SORT l|SORT l DESC|SORT l ALPHA|SORT l DESC ALPHA LIMIT 1 3|SORT l BY nosort|SORT l BY nosort DESC|SORT l BY nosort LIMIT 2 3|SORT l BY nosort DESC LIMIT 2 3|SORT l LIMIT 0 0|SORT l LIMIT -5 2|SORT l LIMIT 100 1|SORT l LIMIT 1 -7|SORT l LIMIT 3 9223372036854775807|SORT l GET # GET foo LIMIT 0 2",
	"RPUSH l 1  2|SORT l|RPUSH l x|SORT l|SORT l STORE d|EXISTS d|SORT l BY nosort|SORT l ALPHA|RPUSH nan nan|SORT nan|RPUSH space  |SORT space|RPUSH zero 1\x00x  2\x00y|SORT zero|RPUSH tail 1x|SORT tail|SORT l LIMIT x 1|SORT l LIMIT 1|SORT l foo|SORT l BY|SORT l GET|SORT_RO l STORE d|SORT l STORE|SORT none LIMIT 1 1|SORT none FOO",
	"RPUSH l a\x00b a\x00a a A b|SORT l ALPHA|SORT l ALPHA DESC|SORT l ALPHA STORE d|LRANGE d 0 -1|SORT l STORE\x00x d|SORT l BY\x00 x\x00* GET\x00x #\x00y|SORT l BY nosort GET # GET x STORE d|LRANGE d 0 -1",
	"ZADD z 3 a 1 c 2 b|SORT z BY nosort|SORT z BY nosort DESC LIMIT 0 2|SORT z BY nosort LIMIT 1 1|SORT z|SORT z ALPHA|SORT z DESC ALPHA|SORT z BY x STORE d|LRANGE d 0 -1|SADD s c a b|SORT s BY x DESC STORE d|LRANGE d 0 -1|SORT s BY x LIMIT 1 1 STORE d|LRANGE d 0 -1|SET d x|EXPIRE d 1000|SORT s ALPHA STORE d|TTL d|TYPE d|SORT none STORE d|EXISTS d|SORT s ALPHA LIMIT 5 1 STORE d|SET str x|SORT str|SORT str foo|HSET h f v|SORT h|SORT h STORE d|SORT s ALPHA STORE s|TYPE s|SORT s ALPHA STORE x STORE y|EXISTS x y",
	"SADD s 3 1 2|SORT_RO s|SORT_RO s DESC|SORT_RO s GET # GET #|SORT_RO none",
}

// Whatever they say, the replies are those of a real Redis.
func TestSortIsLikeRedis(t *testing.T) {
	server := startRedis(t)
	for proto := 2; proto <= 3; proto++ {
		server.do(t, "HELLO", fmt.Sprint(proto))
		for _, example := range examples {
			w := world{}
			server.do(t, "FLUSHALL")
			for line := range strings.SplitSeq(example, "|") {
				server.forgetRange(t)
				compare(t, w, server, strings.Split(line, " "), proto, []string{example})
			}
		}
	}
}

// Numbers that C calls out of range are an error of SORT.
func TestSortOutOfRangeIsLikeRedis(t *testing.T) {
	server := startRedis(t)
	for _, word := range []string{"1e400", "-1e400", "1e-400", "0e-400", "1e-310", "2.2250738585072014e-308", "2.2250738585072011e-308", "0x1p1024", "infinity", "INF", "+inf", "in", "nan(1)", "1e", "1e+", "0x", "0x.8", "1_0", ".5", "5.", ".", "+", "--1", "\t\n\v\f\r1", "1 ", "1\n"} {
		w := world{}
		server.do(t, "FLUSHALL")
		for _, words := range [][]string{{"RPUSH", "l", word, "1"}, {"SORT", "l"}} {
			server.forgetRange(t)
			compare(t, w, server, words, 2, nil)
		}
	}
}

// Patterns that name other keys are refused, and nothing is done.
func TestSortByOtherKeys(t *testing.T) {
	w := world{}
	w.do(t, "RPUSH", "l", "2", "1")
	for _, options := range []string{"BY w_*", "GET w_*", "BY w_*->f STORE d", "ALPHA GET # GET h->*", "by *"} {
		reply := w.do(t, append([]string{"SORT", "l"}, strings.Split(options, " ")...)...)
		if reply.Kind != keyspace.Error || !strings.Contains(reply.Str, "names keys that are not known beforehand") || len(w) != 1 {
			t.Errorf("%s: %+v, %v", options, reply, w)
		}
	}
}

// What is too large is refused before there is memory for it.
func TestSortIsBounded(t *testing.T) {
	const tooLarge = "ERR lock key 'd' would have more than 1048576 bytes or 65536 elements"
	many := slices.Repeat([]string{"GET", "#"}, 60_000)
	for _, c := range []struct {
		words []string
		want  string
	}{
		{append([]string{"SORT", "l", "STORE", "d"}, many...), tooLarge},
		{append([]string{"SORT", "l"}, many...), "ERR SORT of a lock key with a reply of more than 8388608 bytes"},
		{[]string{"SORT", "big", "GET", "#", "GET", "#", "STORE", "d"}, tooLarge},
	} {
		w := world{}
		w.do(t, append([]string{"RPUSH", "l"}, slices.Repeat([]string{"1"}, 1000)...)...)
		w.do(t, "RPUSH", "big", strings.Repeat("1", 300), strings.Repeat("0", 600_000))
		now, before := w.space(time.Now(), "d", "l", "big"), allocated()
		reply, err := now.Do(c.words)
		if taken := allocated() - before; taken > 64<<20 {
			t.Errorf("%.40q takes %d bytes", c.words, taken)
		}
		if err != nil || (reply.Kind == keyspace.Error) != (c.want != "") || reply.Kind == keyspace.Error && reply.Str != c.want {
			t.Errorf("%.40q: %+v, %v", c.words, reply, err)
		}
	}
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// FuzzSort compares what is said of a value with what a Redis says.
func FuzzSort(f *testing.F) {
	for _, seed := range []string{"SORT k ALPHA DESC LIMIT 1 2 GET #", "SORT k BY x STORE k"} {
		f.Add(seed, "\x0f\xf0", false)
		f.Add(seed, "3 1 2", true)
	}
	server := startRedis(f)
	f.Fuzz(func(t *testing.T, text, value string, list bool) {
		words := strings.Split(text, " ")
		name := strings.ToLower(words[0])
		if len(words) < 2 || name != "sort" && name != "sort_ro" || len(value) > 1000 {
			return
		}
		w := world{}
		server.do(t, "FLUSHALL")
		server.forgetRange(t)
		begin := []string{"SET", "k", value}
		if list {
			begin = append([]string{"RPUSH", "k"}, strings.Split(value, " ")...)
		}
		w.do(t, begin...)
		server.do(t, begin...)
		ours := w.do(t, words...)
		if ours.Kind == keyspace.Error && strings.Contains(ours.Str, "beforehand") || list && strings.ContainsAny(value, "eEpP") {
			return // our limits, and numbers out of range
		}
		if theirs := server.do(t, words...); wire(ours, 2, -1) != wire(theirs, 2, -1) {
			t.Errorf("%q of %q: %+v, redis %+v", words, value, ours, theirs)
		}
		compare(t, w, server, []string{"GET", "k"}, 2, nil)
		compare(t, w, server, []string{"LRANGE", "k", "0", "-1"}, 2, nil)
	})
}
