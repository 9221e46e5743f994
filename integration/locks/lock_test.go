//go:build integration

package locks

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLock checks the life of a lock, command by command, with the masters' cells after each
// command.
func TestLock(t *testing.T) {
	f := kit.StartFleet(t)
	proxy, masters := f.Proxies[0], f.Masters
	client := kit.Connect(t, proxy)
	for _, step := range []struct {
		command string
		reply   any
		holder  string // the value on each master; empty: no key
	}{
		{"LOCK k t PX 10000", kit.GrantReply, "t"},
		{"LOCK k u PX 10000", nil, "t"},
		{"LOCK k t PX 10000", nil, "t"}, // not even the holder gets the lock twice
		{"LOCK k u PX 10000 BLOCK 20", nil, "t"},
		{"UNLOCK k u", int64(0), "t"},
		{"EXTEND k u PX 60000", nil, "t"},
		{"EXTEND k t EX 10", kit.GrantReply, "t"},
		{"UNLOCK k t", int64(1), ""},
		{"UNLOCK k t", int64(0), ""},
		{"EXTEND k t PX 10000", nil, ""},
		{"lock k u block 1000 ex 10", kit.GrantReply, "u"},
		{"UNLOCK k t", int64(0), "u"},
		{"UNLOCK k u", int64(1), ""},
	} {
		kit.WantReply(t, client, step.command, step.reply)
		kit.EachMaster(t, masters, func(master *redistest.Server) error {
			if step.holder == "" {
				return kit.CheckAbsent(master, "k")
			}
			return kit.CheckHeld(master, "k", step.holder)
		})
	}
}

// TestLockExpiry checks that an unreleased lock is free after its TTL, and not before its validity
// has passed.
func TestLockExpiry(t *testing.T) {
	f := kit.StartFleet(t)
	proxy, masters := f.Proxies[0], f.Masters
	client := kit.Connect(t, proxy)
	validity := kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "3000")
	grantedAt := time.Now()
	kit.WantGrant(t, kit.Connect(t, proxy), "LOCK", "k", "u", "PX", "10000", "BLOCK", "20000")
	if elapsed := time.Since(grantedAt); elapsed < validity-2*time.Millisecond {
		t.Fatalf("the next client was granted the lock %v after the first, which may rely on it for %v", elapsed, validity)
	}
	kit.Want(t, client, int64(0), "UNLOCK", "k", "t")
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckHeld(master, "k", "u") })
}

func TestKeyPrefix(t *testing.T) {
	masters := kit.StartMasters(t)
	client := kit.Connect(t, kit.StartProxy(t, redistest.URLs(masters), "--key-prefix", "app:"))
	kit.WantReply(t, client, "LOCK k t PX 10000", kit.GrantReply)
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckHeld(master, "app:k", "t") })
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckAbsent(master, "k") })
	kit.Want(t, client, int64(1), "UNLOCK", "k", "t")
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckAbsent(master, "app:k") })
}

// TestSelect checks that the same key in another database is a different lock, in that database of
// each master.
func TestSelect(t *testing.T) {
	f := kit.StartFleet(t)
	proxy, masters := f.Proxies[0], f.Masters
	client0, client3 := kit.Connect(t, proxy), kit.Connect(t, proxy)
	kit.Want(t, client3, "OK", "SELECT", "3")
	kit.WantReply(t, client0, "LOCK k zero PX 10000", kit.GrantReply)
	kit.WantReply(t, client3, "LOCK k three PX 10000", kit.GrantReply)
	kit.Want(t, client0, int64(0), "UNLOCK", "k", "three")
	kit.Want(t, client3, int64(0), "UNLOCK", "k", "zero")
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckHeld(master, "k", "zero") })
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckToken(master, "3", "k", "three") })
	kit.Want(t, client3, int64(1), "UNLOCK", "k", "three")
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckToken(master, "3", "k", nil) })
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", "zero") })
}

func TestMaxTTL(t *testing.T) {
	client := kit.Connect(t, kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--max-ttl", "10s"))
	overMaxTTL := func(command string) any {
		return redistest.RespError("ERR invalid expire time in '" + command + "' command: the TTL exceeds max-ttl (10000 ms)")
	}
	kit.WantReply(t, client, "LOCK k t PX 10001", overMaxTTL("lock"))
	kit.WantReply(t, client, "LOCK k t EX 11", overMaxTTL("lock"))
	kit.WantReply(t, client, "LOCK k t PX 10000", kit.GrantReply)
	kit.WantReply(t, client, "EXTEND k t PX 10001", overMaxTTL("extend"))
	kit.WantReply(t, client, "EXTEND k t EX 10", kit.GrantReply)
}

// TestGeneratedToken checks that, for the token *, the proxy generates a token, and returns it in
// the form of the client's protocol.
func TestGeneratedToken(t *testing.T) {
	f := kit.StartFleet(t)
	proxy, masters := f.Proxies[0], f.Masters
	client := kit.Connect(t, proxy)
	fields, _ := kit.Do(t, client, "LOCK", "a", "*", "PX", "10000").([]any)
	if len(fields) != 4 || fields[0] != "validity" || fields[2] != "token" {
		t.Fatalf("LOCK a * in RESP2: got %#v, want [validity ms token text]", fields)
	}
	kit.Do(t, client, "HELLO", "3")
	reply, _ := kit.Do(t, client, "LOCK", "b", "*", "PX", "10000").(map[string]any)
	if len(reply) != 2 || reply["token"] == fields[3] {
		t.Fatalf("LOCK b * in RESP3: got %#v, want a map of validity and another token than %v", reply, fields[3])
	}
	wantGeneratedToken(t, client, masters, "a", fields[1], fields[3])
	wantGeneratedToken(t, client, masters, "b", reply["validity"], reply["token"])
}

// wantGeneratedToken fails the test unless the reply has a validity and a token of 128 bits in
// hexadecimal. It checks that the token is on the masters, and releases the key.
func wantGeneratedToken(t *testing.T, client *redistest.Client, masters []*redistest.Server, key string, validity, token any) {
	t.Helper()
	text, _ := token.(string)
	if ms, ok := validity.(int64); !ok || ms <= 9000 || len(text) != 32 || strings.Trim(text, "0123456789abcdef") != "" {
		t.Fatalf("LOCK %s *: validity %#v and token %#v", key, validity, token)
	}
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckHeld(master, key, text) })
	kit.Want(t, client, int64(1), "UNLOCK", key, text)
}
