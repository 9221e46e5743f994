package keyspace_test

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/quorum/keygroup"
)

// TestHolders checks that a lock that several clients can hold is a value of another type for all
// commands. No command may change its expiry.
func TestHolders(t *testing.T) {
	lone := keygroup.LoneHolder("me", 3)
	for command, want := range map[string]string{
		"GET a": "WRONGTYPE", "GETSET a x": "WRONGTYPE", "SET a x GET": "WRONGTYPE", "INCR a": "WRONGTYPE", "GETDEL a": "WRONGTYPE",
		"HGETALL a": "WRONGTYPE", "LPUSH a x": "WRONGTYPE", "SADD a x": "WRONGTYPE", "ZADD a 1 x": "WRONGTYPE",
		"EXPIRE a 9": "WRONGTYPE", "PEXPIREAT a 9999999999999": "WRONGTYPE", "PERSIST a": "WRONGTYPE", "GETEX a PERSIST": "WRONGTYPE",
		"RENAME a b": "WRONGTYPE", "COPY a b": "WRONGTYPE",
		"TYPE a": "lock", "OBJECT ENCODING a": "raw", "SET a x NX": "", "DEL a": "", "SET a x": "OK", "RENAME b a": "OK",
	} {
		s := keyspace.NewSnapshot(testTime)
		s.Put("a", keyspace.Entry{Present: true, Value: lone, RemainingTTL: time.Minute})
		s.Put("b", keyspace.Entry{Present: command == "RENAME b a", Value: "x", RemainingTTL: keyspace.NoExpiry})
		reply, err := s.Do(strings.Fields(command))
		if err != nil || !strings.HasPrefix(reply.Str, want) {
			t.Errorf("%s: %+v, %v; want %s", command, reply, err, want)
		}
		for _, e := range s.Edits() {
			if want == "WRONGTYPE" && e.IsChange() {
				t.Errorf("%s changes %+v", command, e)
			}
		}
	}
	content, err := contents.Decode(lone)
	if err != nil || contents.Encode(content) != lone || content.Size() != len(lone) || contents.KindName(lone) != "lock" {
		t.Errorf("%q is read as %+v, %v", lone, content, err)
	}
}
