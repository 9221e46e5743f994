//go:build integration

package integration

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// granted stands for a validity of nearly ten seconds among the replies that a test wants.
const granted = "a validity of nearly 10000 ms"

// TestLock tells the life of a lock, command by command, with what the masters hold after each.
func TestLock(t *testing.T) {
	proxy, masters := startFive(t)
	client := connect(t, proxy)
	for _, step := range []struct {
		command string
		reply   any
		holder  string // the value on each master; empty: no key
	}{
		{"LOCK k t PX 10000", granted, "t"},
		{"LOCK k u PX 10000", nil, "t"},
		{"LOCK k t PX 10000", nil, "t"}, // not even the holder gets it twice
		{"LOCK k u PX 10000 BLOCK 20", nil, "t"},
		{"UNLOCK k u", int64(0), "t"},
		{"EXTEND k u PX 60000", nil, "t"},
		{"EXTEND k t EX 10", granted, "t"},
		{"UNLOCK k t", int64(1), ""},
		{"UNLOCK k t", int64(0), ""},
		{"EXTEND k t PX 10000", nil, ""},
		{"lock k u block 1000 ex 10", granted, "u"},
		{"UNLOCK k t", int64(0), "u"},
		{"UNLOCK k u", int64(1), ""},
	} {
		wantReply(t, client, step.command, step.reply)
		everywhere(t, masters, func(master *harness.Redis) error {
			if step.holder == "" {
				return lacks(master, "k")
			}
			return holds(master, "k", step.holder)
		})
	}
}

// wantReply sends the words of a command.
func wantReply(t *testing.T, client *harness.Client, command string, reply any) {
	t.Helper()
	got := do(t, client, strings.Fields(command)...)
	if reply != any(granted) {
		if !reflect.DeepEqual(got, reply) {
			t.Fatalf("%s: got %#v, want %#v", command, got, reply)
		}
		return
	}
	if ms, ok := got.(int64); !ok || ms <= 9000 || ms >= 10000 {
		t.Fatalf("%s: got %#v, want %s", command, got, granted)
	}
}

// TestLockExpires: a lock that nobody gives back is free when its time is over, and not before its validity was.
func TestLockExpires(t *testing.T) {
	proxy, masters := startFive(t)
	client := connect(t, proxy)
	validity := wantGrant(t, client, "LOCK", "k", "t", "PX", "300")
	answered := time.Now()
	wantGrant(t, connect(t, proxy), "LOCK", "k", "u", "PX", "10000", "BLOCK", "5000")
	if waited := time.Since(answered); waited < validity-2*time.Millisecond {
		t.Fatalf("the next was granted the lock %v after the first, who may rely on it for %v", waited, validity)
	}
	want(t, client, int64(0), "UNLOCK", "k", "t")
	everywhere(t, masters, func(master *harness.Redis) error { return holds(master, "k", "u") })
}

func TestKeyPrefix(t *testing.T) {
	masters := startMasters(t)
	client := connect(t, startProxy(t, harness.URLs(masters), "--key-prefix", "app:"))
	wantReply(t, client, "LOCK k t PX 10000", granted)
	everywhere(t, masters, func(master *harness.Redis) error { return holds(master, "app:k", "t") })
	everywhere(t, masters, func(master *harness.Redis) error { return lacks(master, "k") })
	want(t, client, int64(1), "UNLOCK", "k", "t")
	everywhere(t, masters, func(master *harness.Redis) error { return lacks(master, "app:k") })
}

// TestSelect: the same key in another database is another lock, and stands in that database of each master.
func TestSelect(t *testing.T) {
	proxy, masters := startFive(t)
	zero, three := connect(t, proxy), connect(t, proxy)
	want(t, three, "OK", "SELECT", "3")
	wantReply(t, zero, "LOCK k zero PX 10000", granted)
	wantReply(t, three, "LOCK k three PX 10000", granted)
	want(t, zero, int64(0), "UNLOCK", "k", "three")
	want(t, three, int64(0), "UNLOCK", "k", "zero")
	everywhere(t, masters, func(master *harness.Redis) error { return holds(master, "k", "zero") })
	everywhere(t, masters, func(master *harness.Redis) error { return stands(master, "3", "k", "three") })
	want(t, three, int64(1), "UNLOCK", "k", "three")
	everywhere(t, masters, func(master *harness.Redis) error { return stands(master, "3", "k", nil) })
	everywhere(t, masters, func(master *harness.Redis) error { return stands(master, "0", "k", "zero") })
}

// stands wants a value (nil: none) under a key of one database.
func stands(master *harness.Redis, db, key string, value any) error {
	client, err := harness.Dial(master.Addr(), time.Second)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Do("SELECT", db); err != nil {
		return err
	}
	got, err := client.Do("GET", key)
	if err == nil && got != value {
		err = fmt.Errorf("master %s, database %s: %s is %v, want %v", master.Addr(), db, key, got, value)
	}
	return err
}

func TestMaxTTL(t *testing.T) {
	client := connect(t, startProxy(t, harness.URLs(startMasters(t)), "--max-ttl", "10s"))
	over := func(command string) any {
		return harness.RespError("ERR invalid expire time in '" + command + "' command: over max-ttl, 10000 ms")
	}
	wantReply(t, client, "LOCK k t PX 10001", over("lock"))
	wantReply(t, client, "LOCK k t EX 11", over("lock"))
	wantReply(t, client, "LOCK k t PX 10000", granted)
	wantReply(t, client, "EXTEND k t PX 10001", over("extend"))
	wantReply(t, client, "EXTEND k t EX 10", granted)
}

// TestMadeToken: for the token * the proxy makes one, and tells it in the form that HELLO's reply has.
func TestMadeToken(t *testing.T) {
	proxy, masters := startFive(t)
	client := connect(t, proxy)
	flat, _ := do(t, client, "LOCK", "a", "*", "PX", "10000").([]any)
	if len(flat) != 4 || flat[0] != "validity" || flat[2] != "token" {
		t.Fatalf("LOCK a * in RESP2: got %#v, want [validity ms token text]", flat)
	}
	do(t, client, "HELLO", "3")
	reply, _ := do(t, client, "LOCK", "b", "*", "PX", "10000").(map[string]any)
	if len(reply) != 2 || reply["token"] == flat[3] {
		t.Fatalf("LOCK b * in RESP3: got %#v, want a map of validity and another token than %v", reply, flat[3])
	}
	wantMade(t, client, masters, "a", flat[1], flat[3])
	wantMade(t, client, masters, "b", reply["validity"], reply["token"])
}

// wantMade wants a validity, and a token of 128 bits in hexadecimal that holds the key and releases it.
func wantMade(t *testing.T, client *harness.Client, masters []*harness.Redis, key string, validity, token any) {
	t.Helper()
	text, _ := token.(string)
	if ms, ok := validity.(int64); !ok || ms <= 9000 || len(text) != 32 || strings.Trim(text, "0123456789abcdef") != "" {
		t.Fatalf("LOCK %s *: validity %#v and token %#v", key, validity, token)
	}
	everywhere(t, masters, func(master *harness.Redis) error { return holds(master, key, text) })
	want(t, client, int64(1), "UNLOCK", key, text)
}
