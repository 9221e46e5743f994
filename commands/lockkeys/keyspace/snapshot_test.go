package keyspace_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
)

var testTime = time.UnixMilli(1_700_000_000_000)

// parseEntry parses "value:ms", "value" without expiry, "value:?" for an unknown time, or "." for
// an absent key.
func parseEntry(text string) keyspace.Entry {
	value, left, hasTTL := strings.Cut(text, ":")
	e := keyspace.Entry{Present: text != ".", Value: value, RemainingTTL: keyspace.NoExpiry}
	switch {
	case !e.Present:
		return keyspace.Entry{}
	case left == "?":
		e.RemainingTTL = keyspace.UnknownExpiry
	case hasTTL:
		e.RemainingTTL, _ = time.ParseDuration(left + "ms")
	}
	return e
}

func formatEntry(e keyspace.Entry) string {
	switch {
	case !e.Present:
		return "."
	case e.RemainingTTL == keyspace.NoExpiry:
		return e.Value
	case e.RemainingTTL == keyspace.UnknownExpiry:
		return e.Value + ":?"
	default:
		return fmt.Sprintf("%s:%d", e.Value, e.RemainingTTL.Milliseconds())
	}
}

// formatEdits formats the edits of a Snapshot: before→after, and the command that set the time.
// It adds "keep" if the time does not change, and "asked" if a reply depends on the key.
func formatEdits(s *keyspace.Snapshot) string {
	var texts []string
	for _, e := range s.Edits() {
		text := fmt.Sprintf("%s %s→%s", e.Key, formatEntry(e.Before), formatEntry(e.After))
		if e.KeepTTL {
			text += " keep"
		}
		if e.ReplyDependsOn {
			text += " asked"
		}
		if e.ExpiryCommand != "" {
			text += " by " + e.ExpiryCommand
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func snapshotOf(a string) *keyspace.Snapshot {
	s := keyspace.NewSnapshot(testTime)
	s.Put("a", parseEntry(a))
	s.Put("b", keyspace.Entry{})
	return s
}

// TestEdits checks the edits of a key, and their conditions, after commands separated by "; ".
func TestEdits(t *testing.T) {
	tests := [][3]string{
		{".", "GET a", ""},
		{"x:500", "GET a; PTTL a; EXISTS a b", ""},
		{".", "SET a v", "a .→v"},
		{".", "SET a v PX 9", "a .→v:9 by set"},
		{".", "SET a v NX EX 9", "a .→v:9000 asked by set"},
		{"x:500", "SET a v NX PX 9", ""},
		{"x:500", "SET a v", "a x:500→v"},
		{"x:500", "SET a v KEEPTTL", "a x:500→v:500 keep"},
		{"x:?", "SET a v KEEPTTL", "a x:?→v:? keep"},
		{".", "SET a v KEEPTTL", "a .→v"},
		{"x:500", "SET a x KEEPTTL", ""},
		{"x:500", "SET a x", "a x:500→x"},
		{"x", "SET a x", "a x→x"},
		{".", "SET a v PXAT 1", ""},
		{"x:500", "SET a v PXAT 1", "a x:500→."},
		{"x:500", "SET a v PXAT 1700000000700", "a x:500→v:700 by set"},
		{"x:?", "DEL a", "a x:?→. asked"},
		{".", "DEL a", ""},
		{"x:500", "DEL a; SET a x KEEPTTL", "a x:500→x asked"},
		{"x:500", "PEXPIRE a 9", "a x:500→x:9 asked by pexpire"},
		{"x:?", "PEXPIRE a 9", "a x:?→x:9 asked by pexpire"},
		{"x:?", "PEXPIRE a 0", "a x:?→. asked"},
		{"x:500", "PERSIST a", "a x:500→x asked by persist"},
		{"x", "PERSIST a", ""},
		{"x:?", "GETEX a PERSIST", "a x:?→x asked by getex"},
		{"x:500", "APPEND a y", "a x:500→xy:500 keep asked"},
		{"7:?", "INCR a", "a 7:?→8:? keep asked"},
		{".", "INCR a", "a .→1 asked"},
		{"x:500", "INCR a; GET b", ""},
		{".", "SETNX a v; EXPIRE a 3", "a .→v:3000 asked by expire"},
		{".", "SETNX a v; DEL a", ""},
		{"x:500", "SET a y; SET a x KEEPTTL", "a x:500→x"},
		{"x:500", "GET b; SET a v", "b .→. asked, a x:500→v"},
		{"x:500", "GET b; GET a", ""},
		{".", "MSETNX a v b w", "a .→v asked, b .→w asked"},
		{"x", "MSET a v b w", "a x→v, b .→w"},
		{"x:500", "SET a v IFEQ x PX 9", "a x:500→v:9 asked by set"},
		{"x:500", "SET a v IFEQ y PX 9", ""},
		{"x:500", "SET a v IFNE y PX 9", "a x:500→v:9 asked by set"},
		{".", "SET a v IFEQ x", ""},
		{".", "SET a v IFNE x", "a .→v asked"},
		{"x", "DELEX a IFEQ x", "a x→. asked"},
		{"x", "DELEX a IFEQ y", ""},
		{"x", "DELEX a IFNE y", "a x→. asked"},
		{"x", "DELEX a IFNE x", ""},
		{".", "DELEX a IFNE x", ""},
		{"x", "DELEX a", "a x→. asked"},
		{"x", "DELIFEQ a x", "a x→. asked"},
	}
	for _, test := range tests {
		s := snapshotOf(test[0])
		for line := range strings.SplitSeq(test[1], "; ") {
			if _, err := s.Do(strings.Split(line, " ")); err != nil {
				t.Errorf("%s: %s: %v", test[0], line, err)
			}
		}
		if got := formatEdits(s); got != test[2] {
			t.Errorf("%s: %s:\n got %s\nwant %s", test[0], test[1], got, test[2])
		}
	}
}

// TestLaterCommands checks commands that Redis 7.0 does not have.
func TestLaterCommands(t *testing.T) {
	const syntax = "ERR syntax error"
	tests := []struct {
		before, line string
		want         keyspace.Reply
	}{
		{"x", "SET a v IFEQ x", keyspace.OK()},
		{"x", "SET a v IFEQ y", keyspace.Reply{}},
		{".", "SET a v IFEQ y", keyspace.Reply{}},
		{"x", "set a v px 9 ifeq x", keyspace.OK()},
		{"x", "SET a v IFEQ x GET", keyspace.BulkReply("x")},
		{"x", "SET a v IFEQ y GET", keyspace.BulkReply("x")},
		{".", "SET a v IFNE y", keyspace.OK()},
		{".", "SET a v IFNE y GET", keyspace.Reply{}},
		{"x", "SET a v IFNE x", keyspace.Reply{}},
		{"x", "SET a v IFEQ", keyspace.ErrorReply(syntax)},
		{"x", "SET a v NX IFEQ x", keyspace.ErrorReply(syntax)},
		{"x", "SET a v IFEQ x XX", keyspace.ErrorReply(syntax)},
		{"x", "SET a v IFEQ x IFNE y", keyspace.ErrorReply(syntax)},
		{"x", "SET a v IFDEQ 0123456789abcdef", keyspace.Reply{}},
		{"x", "SET a v IFDNE 0123456789abcdef", keyspace.OK()},
		{"Hello world", "SET a v IFDEQ B6ACB9D84A38FF74", keyspace.OK()},
		{".", "SET a v IFDNE 0123456789abcdef", keyspace.OK()},
		{"x", "SET a v IFDEQ 0123456789abcdeg",
			keyspace.ErrorReply("ERR digest must be exactly 16 hexadecimal characters")},
		{"x", "DELEX a IFEQ x", keyspace.IntReply(1)},
		{"x", "delex a ifeq y", keyspace.IntReply(0)},
		{".", "DELEX a IFEQ x", keyspace.IntReply(0)},
		{".", "DELEX a IFNE x", keyspace.IntReply(0)},
		{"x", "DELEX a", keyspace.IntReply(1)},
		{"x", "DELEX a IFDEQ 0123456789abcdef", keyspace.IntReply(0)},
		{"x", "DELEX a IFDNE 0123456789abcdef", keyspace.IntReply(1)},
		{"x", "DELEX a IFDEQ 0", keyspace.ErrorReply("ERR digest must be exactly 16 hexadecimal characters")},
		{"x", "DELEX a IFEQ", keyspace.ErrorReply("ERR wrong number of arguments for 'delex' command")},
		{"x", "DELEX a IFEQ x y", keyspace.ErrorReply("ERR wrong number of arguments for 'delex' command")},
		{"x", "DELIFEQ a x", keyspace.IntReply(1)},
		{"x", "DELIFEQ a y", keyspace.IntReply(0)},
		{"x", "DELIFEQ a", keyspace.ErrorReply("ERR wrong number of arguments for 'delifeq' command")},
	}
	for _, test := range tests {
		got, err := snapshotOf(test.before).Do(strings.Split(test.line, " "))
		if err != nil || !equalReplies(got, test.want, 0) {
			t.Errorf("%s: %s: %+v, %v, want %+v", test.before, test.line, got, err, test.want)
		}
	}
}

// TestUnknownTime checks that Do runs no command that needs an unknown remaining time.
func TestUnknownTime(t *testing.T) {
	for _, line := range []string{"TTL a", "PTTL a", "EXPIRETIME a", "PEXPIRETIME a", "PERSIST a", "PEXPIRE a 9 NX",
		"EXPIRE a 9 XX", "EXPIREAT a 9 GT", "PEXPIREAT a 9 LT"} {
		s := snapshotOf("x:?")
		if _, err := s.Do(strings.Split(line, " ")); !errors.Is(err, keyspace.ErrNeedsRead) {
			t.Errorf("%s: %v", line, err)
		}
		if got := formatEdits(s); got != "" {
			t.Errorf("%s: %s", line, got)
		}
	}
}

func TestUnreadKey(t *testing.T) {
	for line, want := range map[string]string{"GET c": "c", "MSET a x d y": "d", "DEL a b c d": "c", "EXISTS C": "C"} {
		s := snapshotOf("x")
		_, err := s.Do(strings.Split(line, " "))
		var unreadErr *keyspace.UnreadError
		if !errors.As(err, &unreadErr) || unreadErr.Key != want {
			t.Errorf("%s: %v, want key %s", line, err, want)
		}
		if s.HasUsedKeys() {
			t.Errorf("%s has done something", line)
		}
	}
}

// TestLastMillisecond checks that a key with less than a millisecond left exists, as on a Redis.
func TestLastMillisecond(t *testing.T) {
	s := snapshotOf("x:0")
	reply, err := s.Do([]string{"PTTL", "a"})
	if err != nil || reply.Int != 0 || reply.Kind != keyspace.Int {
		t.Errorf("%+v, %v", reply, err)
	}
}

// TestLongTimes checks that the largest time.Duration limits expiries.
func TestLongTimes(t *testing.T) {
	s := snapshotOf(".")
	if reply, err := s.Do([]string{"SET", "a", "v", "PXAT", "9223372036854775807"}); err != nil || reply.Str != "OK" {
		t.Fatalf("%+v, %v", reply, err)
	}
	if left := s.Edits()[0].After.RemainingTTL; left < math.MaxInt64-time.Millisecond {
		t.Errorf("%v", left)
	}
}

func TestLongValues(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, words := range [][]string{{"APPEND", "a", "yz"}, {"SETRANGE", "a", "1048576", "y"},
		{"SETRANGE", "a", "9223372036854775807", "y"}, {"SETRANGE", "b", "1048575", "yz"}} {
		s := snapshotOf(long)
		reply, err := s.Do(words)
		if err != nil || reply.Str != "ERR string exceeds maximum allowed size (proto-max-bulk-len)" || formatEdits(s) != "" {
			t.Errorf("%.40q: %+v, %v", words, reply, err)
		}
	}
}

// FuzzDo checks that no command panics, and that edits begin with the original values.
func FuzzDo(f *testing.F) {
	for _, seed := range []string{"SET a v NX PX 9", "GETRANGE a 0 -1", "SETRANGE b 3 x", "MSET a b b",
		"INCRBY a 9223372036854775807", "EXPIRE a 9 GT LT", "getex b PERSIST", "DELEX a IFEQ x"} {
		f.Add(seed, "x:500")
	}
	f.Fuzz(func(t *testing.T, line, before string) {
		s := snapshotOf(before)
		reply, err := s.Do(strings.Split(line, " "))
		if err != nil && reply.Kind != keyspace.Nil {
			t.Errorf("%q: %+v and %v", line, reply, err)
		}
		for _, e := range s.Edits() {
			if e.Key == "a" && e.Before != parseEntry(before) || e.Key == "b" && e.Before.Present {
				t.Errorf("%q: %+v", line, e)
			}
		}
	})
}

// TestCost checks that the cost of a command depends on the sizes of its keys, unless it touches
// only a few elements.
func TestCost(t *testing.T) {
	s := keyspace.NewSnapshot(testTime)
	for _, key := range []string{"a", "b"} {
		s.Put(key, parseEntry(strings.Repeat("x", 1000)))
	}
	s.Put("c", parseEntry("."))
	for words, want := range map[string]int{
		"get a": 0, "hget a x": 0, "sadd a x": 0, "nonsense a": 0, "smembers": 0, "smembers a": 4000,
		"zinterstore c 2 a b": 8000, "hscan a 0": 4000,
		"smembers missing": 0,
	} {
		if got := s.Cost(strings.Fields(words)); got != want {
			t.Errorf("%s: %d, want %d", words, got, want)
		}
	}
}
