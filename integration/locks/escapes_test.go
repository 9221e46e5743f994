//go:build integration

package locks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// ownKeys lists the proxies' own keys on the masters, without their prefix.
var ownKeys = []string{"marker", "sequence", "canary", "quarantine", "databases", "longest", "catch-up", "proxies",
	"scripts", "scripts-used", "scripts-bytes", "age:x", ""}

// startTwoProxies starts an upstream and two proxies. args determine which keys are lock keys.
func startTwoProxies(t *testing.T, args ...string) (upstream *redistest.Server, masters []*redistest.Server, clients []*redistest.Client) {
	t.Helper()
	upstream = kit.StartRedis(t)
	masters = kit.StartMasters(t)
	var urls []string
	for _, m := range masters {
		urls = append(urls, m.URL())
	}
	for range 2 {
		proxy := kit.StartProxy(t, urls, append([]string{"--upstream", upstream.URL()}, args...)...)
		client, err := redistest.Dial(proxy.Addr(), kit.WaitLimit)
		kit.Must(t, err)
		t.Cleanup(func() { _ = client.Close() })
		clients = append(clients, client)
	}
	return upstream, masters, clients
}

// isRefusalWithName reports whether a reply is an error that contains the name and is not NOQUORUM.
func isRefusalWithName(reply any, name string) bool {
	failure, isError := reply.(redistest.RespError)
	return isError && !strings.HasPrefix(string(failure), "NOQUORUM") && strings.Contains(string(failure), name)
}

// ownKeyAttacks returns attacks that try to reach a key. Each attack is a list of client commands,
// such as a transaction.
func ownKeyAttacks(key string) [][][]string {
	var attacks [][][]string
	for _, line := range []string{
		"SET % v", "SET % v NX PX 60000", "SET % v XX", "SET % v GET", "SETNX % v", "SETEX % 10 v", "PSETEX % 10000 v",
		"GETSET % v", "GETDEL %", "GETEX % PX 1", "GET %", "STRLEN %",
		"APPEND % v", "INCR %", "SETRANGE % 0 v", "SETBIT % 1 1", "EXPIRE % 1", "PEXPIREAT % 1", "PERSIST %", "DEL %",
		"UNLINK %", "TOUCH %", "EXISTS %", "TYPE %", "PTTL %",
		"MSET a v % v", "MSETNX a v % v", "MGET a %", "DEL a %", "UNLINK % a", "DELEX % IFEQ v", "DELIFEQ % v",
		"WATCH %", "WATCH a %",
		"LOCK % t PX 60000", "LOCK % * PX 60000", "LOCK % t PX 60000 BLOCK 10", "UNLOCK % t", "EXTEND % t PX 60000",
		"HSET % f v", "HDEL % f", "ZADD % 1 m", "RENAME a %", "RENAME % a", "COPY a %", "RESTORE % 0 x",
		"SORT a STORE %", "GEOSEARCHSTORE % a FROMLONLAT 0 0 BYRADIUS 1 m", "BITOP AND % a",
	} {
		attacks = append(attacks, [][]string{strings.Fields(strings.ReplaceAll(line, "%", key))})
	}
	for _, body := range []string{
		"return redis.call('set', KEYS[1], 'v')", "return redis.call('del', KEYS[1])",
		"return redis.call('set', ARGV[1], 'v')", "return redis.call('del', ARGV[1]..ARGV[2])",
		"return redis.call('set', string.reverse(ARGV[3]), 'v', 'NX', 'PX', 60000)", "return redis.call('get', KEYS[1])",
	} {
		attacks = append(attacks, [][]string{{"EVAL", body, "1", key, key[:5], key[5:], reverse(key)}})
		if !strings.Contains(body, "KEYS") {
			attacks = append(attacks, [][]string{{"EVAL", body, "1", "a", key, "", reverse(key)}})
		}
	}
	for _, queued := range []string{"SET % v", "DEL %", "GET %"} {
		attacks = append(attacks, [][]string{{"MULTI"}, strings.Fields(strings.ReplaceAll(queued, "%", key)), {"EXEC"}})
	}
	return attacks
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// TestOwnKeyIsolation checks that no client command reads or changes the proxies' own keys,
// in any database. This holds without a key prefix, and with a part of the keys' names as the
// prefix.
func TestOwnKeyIsolation(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, c := range []struct{ name, prefix string }{{"no prefix", ""}, {"half of it is the prefix", "redlock-"}} {
		t.Run(c.name, func(t *testing.T) {
			_, masters, clients := startTwoProxies(t, "--lock-keys", "*", "--key-prefix", c.prefix)
			kit.Want(t, clients[0], "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "SCRIPT", "LOAD", "return 1")
			kit.WantGrant(t, clients[0], "LOCK", "held", "me", "PX", "600000")
			stateBefore := awaitOwnStates(t, masters[0])
			for _, name := range ownKeys {
				fullName := "redlock-proxy:" + name
				key := strings.TrimPrefix(fullName, c.prefix)
				for i, commands := range ownKeyAttacks(key) {
					tryOwnKey(t, clients[i%2], fullName, commands)
				}
			}
			kit.Want(t, clients[0], "OK", "SELECT", "3")
			tryOwnKey(t, clients[0], "redlock-proxy:marker", [][]string{{"SET",
				strings.TrimPrefix("redlock-proxy:marker", c.prefix), "v"}})
			if stateAfter := ownStateKeys(t, masters[0]); !slices.Equal(stateBefore, stateAfter) {
				t.Errorf("the keys were %q, and are %q", stateBefore, stateAfter)
			}
			kit.Want(t, clients[1], nil, "LOCK", "held", "you", "PX", "600000")
			kit.WantGrant(t, clients[1], "LOCK", "other", "you", "PX", "600000")
			kit.Want(t, clients[1], int64(1), "EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0")
		})
	}
}

// tryOwnKey fails the test unless the last command gets an error other than NOQUORUM.
func tryOwnKey(t *testing.T, client *redistest.Client, name string, commands [][]string) {
	t.Helper()
	var replies []any
	for _, words := range commands {
		replies = append(replies, kit.Do(t, client, words...))
	}
	lastReply := replies[len(replies)-1]
	failure, isError := lastReply.(redistest.RespError)
	if !isError || strings.HasPrefix(string(failure), "NOQUORUM") {
		t.Errorf("%q: %v, want a refusal for %s", commands, replies, name)
	}
}

// ownStateKeys returns the names and types of the proxies' own keys on a master, and the values of
// the constant keys.
func ownStateKeys(t *testing.T, master *redistest.Server) (states []string) {
	t.Helper()
	client, err := redistest.Dial(master.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	keys, _ := kit.Do(t, client, "KEYS", "redlock-proxy:*").([]any)
	for _, key := range keys {
		name := key.(string)
		state := fmt.Sprintf("%s is a %v", name, kit.Do(t, client, "TYPE", name))
		if name == "redlock-proxy:marker" || name == "redlock-proxy:scripts" {
			state += fmt.Sprintf(" with %v", kit.Do(t, client, "DUMP", name))
		}
		states = append(states, state)
	}
	slices.Sort(states)
	return states
}

// awaitOwnStates waits until the proxies' own keys on a master have not changed for a while. Then
// the master has received even the commands that the proxies send after a majority has replied.
func awaitOwnStates(t *testing.T, master *redistest.Server) (states []string) {
	t.Helper()
	hasLongest := func() bool { return slices.Contains(states, "redlock-proxy:longest is a string") }
	for previous := []string{}; !hasLongest() || !slices.Equal(previous, states); {
		time.Sleep(500 * time.Millisecond) // until two reads in a row are equal
		previous, states = states, ownStateKeys(t, master)
	}
	return states
}

// wantKeys fails the test unless exactly the given keys of a server match a pattern. It supports at
// most one key, because the order is undefined.
func wantKeys(t *testing.T, client *redistest.Client, pattern string, keys ...string) {
	t.Helper()
	if got := fmt.Sprint(kit.Do(t, client, "KEYS", pattern)); got != fmt.Sprint(keys) {
		t.Errorf("KEYS %s: %s, want %s", pattern, got, keys)
	}
}

// TestScriptOfAnotherProxy checks that a proxy knows a script that another proxy loaded: the lock
// that the script takes is on the masters. If the other proxy only got the script in an EVAL, an
// EVALSHA gets NOSCRIPT, although the upstream knows the script.
func TestScriptOfAnotherProxy(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	upstream, _, clients := startTwoProxies(t, "--lock-keys", "lock:*")
	upstreamClient, err := redistest.Dial(upstream.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer upstreamClient.Close()
	const body = "return redis.call('set','lock:'..ARGV[1],ARGV[2],'NX','PX',30000)"
	sha, _ := kit.Do(t, clients[0], "SCRIPT", "LOAD", body).(string)
	kit.Want(t, clients[1], "OK", "EVALSHA", sha, "1", "foo", "loaded", "me")
	kit.Want(t, clients[0], nil, "SET", "lock:loaded", "you", "NX", "PX", "30000")

	const evaluatedBody = body + " -- sent"
	kit.Want(t, clients[0], "OK", "EVAL", evaluatedBody, "0", "sent", "me")
	kit.Want(t, clients[0], "OK", "EVAL", "return redis.call('set',KEYS[1],'v')", "1", "foo")
	evaluatedSHA, _ := kit.Do(t, upstreamClient, "SCRIPT", "LOAD", evaluatedBody).(string)
	kit.Want(t, clients[1], redistest.RespError("NOSCRIPT No matching script. Please use EVAL."), "EVALSHA", evaluatedSHA,
		"1", "foo", "sent", "you")
	kit.Want(t, clients[1], nil, "EVAL", evaluatedBody, "1", "foo", "sent", "you")
	kit.Want(t, clients[1], nil, "EVALSHA", evaluatedSHA, "1", "foo", "sent", "you")
	wantKeys(t, upstreamClient, "*", "foo")
}

// TestScriptLoadLimit checks that a flood of scripts leaves 1,000 scripts on each master. The
// scripts expire, and another proxy finds the last one.
func TestScriptLoadLimit(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	_, masters, clients := startTwoProxies(t, "--lock-keys", "lock:*")
	const scriptCount = 1200
	lastSHA := ""
	for i := range scriptCount {
		lastSHA, _ = kit.Do(t, clients[0], "SCRIPT", "LOAD", fmt.Sprintf("return %d", i)).(string)
	}
	kit.Want(t, clients[1], int64(scriptCount-1), "EVALSHA", lastSHA, "1", "lock:a")
	for _, master := range masters {
		client, err := redistest.Dial(master.Addr(), kit.WaitLimit)
		kit.Must(t, err)
		kit.Want(t, client, int64(1000), "HLEN", "redlock-proxy:scripts")
		if ttl, _ := kit.Do(t, client, "PTTL", "redlock-proxy:scripts").(int64); ttl <= 0 {
			t.Errorf("%s: they stay for %d ms", master.Addr(), ttl)
		}
		_ = client.Close()
	}
}

// TestLockInFunction checks that no proxy calls a function that takes a lock, whichever
// proxy loaded the function. The lock stays free.
func TestLockInFunction(t *testing.T) {
	redistest.SkipShort(t)
	redistest.RequireFeature(t, "FUNCTION", "7.0")
	t.Parallel()
	_, _, clients := startTwoProxies(t, "--lock-keys", "lock:*")
	const code = "#!lua name=l\nredis.register_function('f', function(keys, args) return redis.call('set', 'lock:x', args[1]) end)"
	kit.Want(t, clients[0], "l", "FUNCTION", "LOAD", code)
	for _, client := range clients {
		if reply := kit.Do(t, client, "FCALL", "f", "0", "me"); !isRefusalWithName(reply, "'f'") {
			t.Errorf("FCALL: %v", reply)
		}
	}
	kit.Want(t, clients[1], "OK", "SET", "lock:x", "you", "NX", "PX", "30000")
}
