package keyspace_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/redistest"
)

// redisConn is a connection to a redis-server that the test has started.
type redisConn struct {
	conn   net.Conn
	reader *bufio.Reader
}

func startRedis(t testing.TB) *redisConn {
	t.Helper()
	conn, err := net.Dial("tcp", redistest.New(t, redistest.Options{}).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &redisConn{conn, bufio.NewReader(conn)}
}

func (r *redisConn) do(t *testing.T, words ...string) keyspace.Reply {
	t.Helper()
	if _, err := r.conn.Write(redistest.AppendCommand(nil, words...)); err != nil {
		t.Fatal(err)
	}
	reply, err := r.read()
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return reply
}

func (r *redisConn) read() (keyspace.Reply, error) {
	line, err := r.reader.ReadString('\n')
	if err != nil {
		return keyspace.Reply{}, err
	}
	text := strings.TrimSuffix(line[1:], "\r\n")
	n, _ := strconv.ParseInt(text, 10, 64)
	kind := keyspace.Array
	switch line[0] {
	case '+':
		return keyspace.Reply{Kind: keyspace.Status, Str: text}, nil
	case '_':
		return keyspace.Reply{}, nil
	case ',':
		double, err := strconv.ParseFloat(text, 64)
		return keyspace.Reply{Kind: keyspace.Double, Float: double, Str: text}, err
	case '-':
		return keyspace.ErrorReply(text), nil
	case ':':
		return keyspace.IntReply(n), nil
	case '$':
		if n < 0 {
			return keyspace.Reply{}, nil
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(r.reader, body)
		return keyspace.BulkReply(string(body[:n])), err
	case '%':
		kind, n = keyspace.Map, 2*n
	case '~':
		kind = keyspace.Set
	}
	if n < 0 {
		return keyspace.Reply{Kind: keyspace.NilArray}, nil
	}
	elems := make([]keyspace.Reply, n)
	for i := range elems {
		if elems[i], err = r.read(); err != nil {
			return keyspace.Reply{}, err
		}
	}
	return keyspace.Reply{Kind: kind, Elems: elems}, nil
}

// storedKeys holds the value and expiry of each key after the commands of a test.
type storedKeys map[string]storedKey

type storedKey struct {
	value     string
	expiresAt int64 // Unix milliseconds, or -1
}

// snapshot returns the Snapshot of some keys at the time now.
func (w storedKeys) snapshot(now time.Time, keys ...string) *keyspace.Snapshot {
	s := keyspace.NewSnapshot(now)
	for _, key := range keys {
		h, ok := w[key]
		e := keyspace.Entry{Present: ok, Value: h.value, RemainingTTL: keyspace.NoExpiry}
		if h.expiresAt >= 0 {
			e.RemainingTTL = time.Duration(h.expiresAt-now.UnixMilli()) * time.Millisecond
		}
		s.Put(key, e)
	}
	return s
}

// apply makes edits at the time now.
func (w storedKeys) apply(t *testing.T, now time.Time, edits []keyspace.Edit) {
	for _, e := range edits {
		before, ok := w[e.Key]
		if ok != e.Before.Present || ok && before.value != e.Before.Value {
			t.Fatalf("%+v, but the stored key is %+v, %v", e, before, ok)
		}
		after := storedKey{e.After.Value, -1}
		switch {
		case !e.After.Present:
			delete(w, e.Key)
			continue
		case e.KeepTTL:
			after.expiresAt = before.expiresAt
		case e.After.RemainingTTL >= 0:
			after.expiresAt = now.Add(e.After.RemainingTTL).UnixMilli()
		}
		w[e.Key] = after
	}
}

func (w storedKeys) do(t *testing.T, words ...string) keyspace.Reply {
	t.Helper()
	now := time.Now()
	// After a wrong numkeys, any word may count as a key.
	s := w.snapshot(now, append([]string{"a", "b", "c"}, words...)...)
	reply, err := s.Do(words)
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	w.apply(t, now, s.Edits())
	return reply
}

// tolerance returns the permitted difference between two replies about a remaining time, in the
// unit of the command.
func tolerance(words []string) int64 {
	switch strings.ToLower(words[0]) {
	case "pttl", "pexpiretime":
		return 10_000
	case "ttl", "expiretime":
		return 10
	}
	return 0
}

func equalReplies(a, b keyspace.Reply, tolerance int64) bool {
	if a.Kind != b.Kind || a.Str != b.Str || len(a.Elems) != len(b.Elems) {
		return false
	}
	if (a.Int < 0 || b.Int < 0) && a.Int != b.Int || max(a.Int-b.Int, b.Int-a.Int) > tolerance {
		return false
	}
	for i := range a.Elems {
		if !equalReplies(a.Elems[i], b.Elems[i], 0) {
			return false
		}
	}
	return true
}

// commandMaker makes random commands on the keys a and b.
type commandMaker struct{ *rand.Rand }

func (c commandMaker) pick(words ...string) string { return words[c.IntN(len(words))] }

func (c commandMaker) key() string { return c.pick("a", "b") }

func (c commandMaker) value() string {
	return c.pick("x", "x", "y", "", "7", "-3", "07", "9223372036854775807", "long value", "\x00\xff\r\n")
}

// number returns an offset or an amount.
func (c commandMaker) number() string {
	return c.pick("0", "1", "3", "-1", "-2", "-100", "1000", "x", "", "+1", "01", "-0", "9223372036854775807",
		"-9223372036854775808", "9223372036854775808", "600000000")
}

// ttl returns a TTL that is longer than the test, a TTL in the past, or a word that is not a
// number.
func (c commandMaker) ttl(seconds bool) string {
	n := 1_000_000 + c.Int64N(1_000_000_000)
	if seconds {
		n /= 10
	}
	return c.pickUsually(strconv.FormatInt(n, 10), "0", "-1", "x", "", "-9223372036854775808", "9223372036854775807")
}

// unixTime returns a time like ttl, but as a Unix time. TestLongTimes covers the largest Unix
// times.
func (c commandMaker) unixTime(seconds bool) string {
	at := time.Now().UnixMilli() + 1_000_000 + c.Int64N(1_000_000_000)
	if seconds {
		return c.pickUsually(strconv.FormatInt(at/1000, 10), "1", "-1", "x", "-9223372036854776", "9223372036854776")
	}
	return c.pickUsually(strconv.FormatInt(at, 10), "1", "1000", "0", "x", "-9223372036854775808")
}

// pickUsually returns the usual word, or in a quarter of the calls one of the exceptions.
func (c commandMaker) pickUsually(usual string, exceptions ...string) string {
	if c.IntN(4) > 0 {
		return usual
	}
	return c.pick(exceptions...)
}

func (c commandMaker) options(words ...string) (options []string) {
	for c.IntN(3) > 0 {
		switch word := c.pick(words...); strings.ToLower(word) {
		case "ex", "px":
			options = append(options, word, c.ttl(strings.EqualFold(word, "ex")))
		case "exat", "pxat":
			options = append(options, word, c.unixTime(strings.EqualFold(word, "exat")))
		default:
			options = append(options, word)
		}
	}
	return options
}

func (c commandMaker) next() []string {
	key := c.key()
	switch name := c.pick(stringCommands()...); name {
	case "set":
		return append([]string{c.pick("set", "SET", "sEt"), key, c.value()},
			c.options("nx", "NX", "XX", "get", "GET", "keepttl", "EX", "px", "PX", "exat", "PXAT", "persist", "foo", "")...)
	case "setex", "psetex":
		return []string{name, key, c.ttl(name == "setex"), c.value()}
	case "getex":
		return append([]string{name, key}, c.options("EX", "px", "EXAT", "pxat", "PERSIST", "keepttl", "foo")...)
	case "expire", "pexpire":
		return append([]string{name, key, c.ttl(name == "expire")}, c.options("NX", "xx", "GT", "lt", "foo")...)
	case "expireat", "pexpireat":
		return append([]string{name, key, c.unixTime(name == "expireat")}, c.options("nx", "XX", "gt", "LT", "foo")...)
	case "getrange", "substr":
		return []string{name, key, c.number(), c.number()}
	case "setrange":
		return []string{name, key, c.pick("0", "1", "20", "-1", "x", "9223372036854775807"), c.value()}
	case "incrby", "decrby":
		return []string{name, key, c.number()}
	case "setnx", "getset", "append":
		return []string{name, key, c.value()}
	case "mset", "msetnx":
		return c.pairs(name)
	case "del", "unlink", "exists", "touch", "mget":
		return append([]string{name, key}, c.keys()...)
	case "delex", "delifeq", "digest", "msetex", "hgetdel", "hgetex", "hsetex":
		return []string{"get", key} // unknown to Redis 7.0
	default:
		return []string{name, key}
	}
}

// stringCommands returns the names of the commands that a commandMaker makes.
func stringCommands() []string {
	return slices.DeleteFunc(keyspace.Names(), func(name string) bool {
		group, _, _ := keyspace.Docs(name)
		return group != "string" && group != "generic" || slices.Contains([]string{"object", "rename", "renamenx",
			"copy"}, name)
	})
}

func (c commandMaker) keys() (keys []string) {
	for c.IntN(2) > 0 {
		keys = append(keys, c.key())
	}
	return keys
}

func (c commandMaker) pairs(name string) []string {
	words := []string{name, c.key(), c.value()}
	for c.IntN(2) > 0 {
		words = append(words, c.key(), c.value())
	}
	if c.IntN(10) == 0 {
		return words[:len(words)-1]
	}
	return words
}

// TestSnapshotLikeRedis compares all replies, and the remaining keys, with a real Redis.
func TestSnapshotLikeRedis(t *testing.T) {
	server := startRedis(t)
	for seed := range uint64(redistest.SampleCount(400)) {
		random := commandMaker{rand.New(rand.NewPCG(7, seed))}
		w := storedKeys{}
		server.do(t, "FLUSHALL")
		var history []string
		for range 50 {
			words := random.next()
			history = append(history, fmt.Sprintf("%q", words))
			ownReply, redisReply := w.do(t, words...), server.do(t, words...)
			if !equalReplies(ownReply, redisReply, tolerance(words)) {
				t.Fatalf("seed %d:\n%s\n ours %+v\nredis %+v", seed, strings.Join(history, "\n"), ownReply, redisReply)
			}
		}
		for _, key := range []string{"a", "b"} {
			for _, name := range []string{"GET", "PEXPIRETIME"} {
				ownReply, redisReply := w.do(t, name, key), server.do(t, name, key)
				if !equalReplies(ownReply, redisReply, tolerance([]string{name})) {
					t.Fatalf("seed %d:\n%s\nin the end %s %s\n ours %+v\nredis %+v", seed, strings.Join(history, "\n"),
						name, key, ownReply, redisReply)
				}
			}
		}
	}
}

// isNewerThanRedis7 reports whether a command is newer than Redis 7.0.
func isNewerThanRedis7(name string) bool {
	return slices.Contains([]string{"delex", "delifeq", "digest", "msetex", "hgetdel", "hgetex", "hsetex"}, name)
}

// TestCommandTableLikeRedis checks that every command has its keys at the same positions as in
// Redis, and the same group and version.
func TestCommandTableLikeRedis(t *testing.T) {
	server := startRedis(t)
	for _, name := range keyspace.Names() {
		commandDocs := server.do(t, "COMMAND", "DOCS", name).Elems
		if len(commandDocs) == 0 {
			if !isNewerThanRedis7(name) {
				t.Errorf("%s is not a command of Redis", name)
			}
			continue
		}
		docs := map[string]string{}
		for field := range slices.Chunk(commandDocs[1].Elems, 2) {
			docs[field[0].Str] = field[1].Str
		}
		if group, _, since := keyspace.Docs(name); group != docs["group"] || since != docs["since"] {
			t.Errorf("%s is of group %s since %s, in Redis of %s since %s", name, group, since, docs["group"],
				docs["since"])
		}
		words := []string{name, "k1"}
		for !keyspace.Fits(name, len(words)) {
			words = append(words, "v")
		}
		if name == "zinterstore" {
			words[2] = "1"
		}
		var want []string
		for _, key := range server.do(t, append([]string{"COMMAND", "GETKEYS"}, words...)...).Elems {
			want = append(want, key.Str)
		}
		if got := keyspace.Keys(words); !slices.Equal(got, want) {
			t.Errorf("%q has keys %q, want %q", words, got, want)
		}
	}
}

// FuzzOptions compares the options of SET and GETEX with Redis' options. The words of text are
// separated by spaces.
func FuzzOptions(f *testing.F) {
	for _, seed := range []string{"nx px 10000", "PX 10000 NX", "ex 8 nx get", "KEEPTTL", "PXAT 99999999999999",
		"EXAT 1", "px", "px 0", "px -1", "px x", "ex 9223372036854775",
		"nx xx", "px 1000000 px 2000000", "px 1000000 ex 2000000", "keepttl px 1000000", "persist", "get get",
		"PERSIST EX 100000", "  ", "nx nx nx"} {
		f.Add(seed)
	}
	server := startRedis(f)
	f.Fuzz(func(t *testing.T, text string) {
		options := strings.Split(text, " ")
		if strings.Contains(strings.ToLower(text), "if") || strings.Contains(text, "\x00") {
			return // IFEQ and IFNE came later; to C, a word ends with a zero byte
		}
		for _, command := range [][]string{{"SET", "a", "v"}, {"GETEX", "a"}} {
			w := storedKeys{"a": {"x", -1}}
			server.do(t, "SET", "a", "x")
			words := append(command, options...)
			ownReply, redisReply := w.do(t, words...), server.do(t, words...)
			if !equalReplies(ownReply, redisReply, 0) {
				t.Errorf("%q: %+v, redis %+v", words, ownReply, redisReply)
			}
		}
	})
}
