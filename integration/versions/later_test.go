//go:build integration

package versions

import (
	"reflect"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// laterCommands holds conversations with commands that Redis 7.0 lacks, by kind of server.
var laterCommands = map[string]string{
	"redis": `
		HSET lock:h a 1 b 2; HGETDEL lock:h FIELDS 1 a; HGETDEL lock:h FIELDS 2 a b; HGETDEL lock:h FIELDS 1 a; EXISTS lock:h
		HSET lock:h a 1 b 2; HGETDEL lock:h FIELDS 2 a a; HGETDEL lock:none FIELDS 1 a; HGETDEL lock:h FIELDS 0 a; HGETDEL lock:h FIELDS x a
		HGETDEL lock:h foo 1 a; HGETDEL lock:h FIELDS 2 a; HGETDEL lock:h FIELDS 1 a b; HGETDEL lock:h; HGETALL lock:h
		HSETEX lock:e FIELDS 1 a 1; HSETEX lock:e FNX FIELDS 1 a 2; HSETEX lock:e FXX FIELDS 1 a 3; HSETEX lock:e FNX FXX FIELDS 1 a 3
		HSETEX lock:e FXX FIELDS 2 a 1 q 1; HSETEX lock:new FXX FIELDS 1 q 1; EXISTS lock:new; HSETEX lock:new FNX FIELDS 2 q 1 r 2; HGETALL lock:new
		HSETEX lock:e KEEPTTL FIELDS 1 a 9; HSETEX lock:e foo FIELDS 1 a 1
		HGETEX lock:e FIELDS 1 a; HGETEX lock:e PERSIST FIELDS 2 a zz; HGETEX lock:e FIELDS 3 a b; HGETEX lock:none FIELDS 1 a; HGETEX lock:e FIELDS x a
		ZADD lock:z 1 m 2.5 n; ZRANK lock:z m WITHSCORE; ZREVRANK lock:z n withscore; ZRANK lock:z q WITHSCORE; ZRANK lock:z m foo; ZRANK lock:z m WITHSCORE x
		ZRANK lock:none m WITHSCORE; ZRANK lock:z m
		HSCAN lock:e 0 NOVALUES; HSCAN lock:e 0 MATCH a* NOVALUES COUNT 3; ZSCAN lock:z 0 NOVALUES; HSCAN lock:e 0 foo
		SET lock:s v; HGETEX lock:s FIELDS 1 a; HGETDEL lock:s FIELDS 1 a; HSETEX lock:s FIELDS 1 a 1; ZRANK lock:s m WITHSCORE`,
	"valkey": `
		MSETEX 1 lock:k v NX PX 100000; MSETEX 2 lock:k v lock:k2 v2 NX PX 100000; EXISTS lock:k2; MSETEX 2 lock:{t}:k w lock:{t}:k2 w2 PX 100000; MGET lock:{t}:k lock:{t}:k2
		MSETEX 2 lock:k x lock:none x XX; MGET lock:k lock:none; MSETEX 2 lock:{t}:k x lock:{t}:k2 x XX KEEPTTL; MGET lock:{t}:k lock:{t}:k2
		MSETEX 2 lock:{t}:a 1 lock:{t}:b 2 NX EX 100; MSETEX 2 lock:{t}:b 3 lock:{t}:c 3 NX EX 100; MGET lock:{t}:a lock:{t}:b lock:{t}:c
		MSETEX 2 lock:k v; MSETEX 2 lock:k v lock:l; MSETEX 1 lock:k v EX 0; MSETEX 1 lock:k v EX x; MSETEX 1 lock:k v NX XX
		MSETEX 1 lock:k v EX 1 PX 1; MSETEX 1 lock:k v KEEPTTL EX 1; MSETEX 1 lock:k v foo; MSETEX 1 lock:k; MSETEX 1 lock:h v NX; MSETEX 2 lock:k 5 lock:k 6; GET lock:k; TTL lock:k
		SET lock:s a; SET lock:s b IFEQ x; SET lock:s b IFEQ a PX 100000; SET lock:s c IFEQ b GET; DELIFEQ lock:s x; DELIFEQ lock:s c`,
}

// TestLaterCommands checks that laterCommands get the newest server's replies, with any version of
// masters.
func TestLaterCommands(t *testing.T) {
	redistest.SkipShort(t)
	for kind, conversation := range laterCommands {
		t.Run(kind, func(t *testing.T) {
			redisClient := kit.Dial(t, startServers(t, redistest.NewestOf(t, kind))[0].Addr())
			masters := startServers(t, redistest.OldestAndNewest()[0], redistest.InstalledVersion, redistest.InstalledVersion)
			proxy := kit.StartProxy(t, redistest.URLs(masters), append(kit.LockKeyArgs(startServers(t,
				redistest.OldestAndNewest()[0])[0]), "--lock-tags", "*")...)
			for _, proto := range []string{"2", "3"} {
				client := kit.Connect(t, proxy)
				for _, c := range []*redistest.Client{redisClient, client} {
					kit.Do(t, c, "HELLO", proto)
				}
				for line := range strings.FieldsFuncSeq(conversation, func(r rune) bool { return r == ';' || r == '\n' }) {
					words := strings.Fields(line)
					if len(words) == 0 {
						continue
					}
					if got, want := kit.Do(t, client, words...), kit.Do(t, redisClient, words...); !reflect.DeepEqual(got, want) {
						t.Errorf("RESP%s, %v: %#v, want %#v", proto, words, got, want)
					}
				}
				for _, key := range []string{"lock:h", "lock:e", "lock:new", "lock:z", "lock:s", "lock:k", "lock:{t}:k",
					"lock:{t}:k2", "lock:{t}:a", "lock:{t}:b"} {
					kit.Do(t, redisClient, "DEL", key)
					kit.Do(t, client, "DEL", key)
				}
			}
		})
	}
}

// TestDigests checks that DIGEST returns the digest of Redis' documentation, and that the
// conditions on a digest work. Commands that give a field its own TTL are refused.
func TestDigests(t *testing.T) {
	masters := startServers(t, redistest.InstalledVersion, redistest.InstalledVersion, redistest.InstalledVersion)
	upstream := startServers(t, redistest.InstalledVersion)[0]
	kit.Want(t, kit.Dial(t, upstream.Addr()), "OK", "ACL", "SETUSER", "few", "on", ">few", "~lock:*", "+@all",
		"-@dangerous")
	var clients []*redistest.Client
	for range 2 {
		client := kit.Connect(t, kit.StartProxy(t, redistest.URLs(masters), kit.LockKeyArgs(upstream)...))
		kit.WantPrefix(t, client, "AUTH few few", "OK")
		clients = append(clients, client)
	}
	const digest, otherDigest = "b6acb9d84a38ff74", "0000000000000000"
	kit.WantPrefix(t, clients[0], "DIGEST lock:d", "nil")
	kit.WantPrefix(t, clients[0], "SET|lock:d|Hello world|NX|PX|100000", "OK")
	kit.WantPrefix(t, clients[1], "DIGEST lock:d", digest)
	kit.WantPrefix(t, clients[1], "DELEX lock:d IFDEQ "+otherDigest, "0")
	kit.WantPrefix(t, clients[1], "DELEX lock:d IFDNE "+digest, "0")
	kit.WantPrefix(t, clients[1], "DELEX lock:d IFDEQ short", "ERR digest must be")
	kit.WantPrefix(t, clients[1], "SET lock:d x IFDEQ "+otherDigest, "nil")
	kit.WantPrefix(t, clients[1], "SET lock:d x IFDEQ short", "ERR digest must be")
	kit.WantPrefix(t, clients[1], "SET lock:d x IFDEQ "+digest+" NX", "ERR syntax error")
	kit.WantPrefix(t, clients[1], "SET|lock:d|Hello world|IFDNE|"+otherDigest, "OK")
	kit.WantPrefix(t, clients[0], "SET lock:new x IFDEQ "+digest, "nil")
	kit.WantPrefix(t, clients[0], "DELEX lock:d IFDEQ "+strings.ToUpper(digest), "1")
	kit.WantPrefix(t, clients[0], "SET lock:d x IFDNE "+digest, "OK")
	kit.WantPrefix(t, clients[0], "MSETEX 2 lock:m 1 lock:n 2 NX PX 100000", "1")
	kit.WantPrefix(t, clients[1], "MSETEX 2 lock:o 1 lock:n 2 NX PX 100000", "0")
	kit.WantPrefix(t, clients[1], "EXISTS lock:o lock:m lock:n", "2")
	for _, command := range []string{"HSETEX lock:h EX 10 FIELDS 1 a 1", "HGETEX lock:h PX 10 FIELDS 1 a",
		"HEXPIRE lock:h 10 FIELDS 1 a", "HTTL lock:h FIELDS 1 a", "HPERSIST lock:h FIELDS 1 a"} {
		kit.WantPrefix(t, clients[0], command, "ERR ")
	}
	kit.WantPrefix(t, clients[0], "EXISTS lock:h", "0")
	if keys := kit.ReplyText(kit.Do(t, kit.Dial(t, upstream.Addr()), "KEYS", "*")); keys != "[]" {
		t.Errorf("the upstream has %s", keys)
	}
}
