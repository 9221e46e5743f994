package commands

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/master"

	"go.uber.org/goleak"
)

// startCluster starts real masters.
func startCluster(t *testing.T, n int) *quorum.Cluster {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	var urls []string
	for range n {
		urls = append(urls, "unix://"+startRedis(t))
	}
	cluster, err := quorum.NewCluster(quorum.Options{Masters: urls, Access: master.Access{Timeout: 2 * time.Second}, Unguarded: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = cluster.Run(ctx) })
	t.Cleanup(func() { stop(); tasks.Wait() })
	ready, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if !cluster.WaitReady(ready) {
		t.Fatal("the masters do not come up")
	}
	return cluster
}

func newClusterTable(cluster *quorum.Cluster) *Table {
	return NewTable(Options{
		Locks: quorum.NewLocker(cluster), Register: cluster, Scripts: quorum.NewScriptBodies(cluster),
		Settings: Settings{MaxTTL: 100_000 * time.Hour}, LockKeys: []string{"k*"},
	})
}

// lockScripts lists the scripts of the random clients.
var lockScripts = []string{takePlain, takeTwoStep, takeOrRenew, takeOrError, takeOrExtend, releaseScript, releaseThreeWay,
	releaseOrOK, releaseAsText, extendScript, extendSeconds,
	extendBySet, extendLonger, extendOrPersist, extendOrRetake, remainingScript, valueAndTTL, forceScript, takeMany, releaseMany,
	takeByMSetNX,
	`return redis.call('incr', KEYS[1])`, `return redis.pcall('set', KEYS[1], ARGV[1], 'PX', 0)`,
	`redis.call('set', KEYS[1], 'seven') return redis.call('incr', KEYS[1])`,
	`return redis.call('getset', KEYS[1], ARGV[2])`, `return redis.call('mget', KEYS[1], KEYS[#KEYS])`,
	`return {redis.call('type', KEYS[1]), redis.call('strlen', KEYS[1])}`}

// randomDialogue returns the commands, scripts and transactions of a client on two lock keys. All
// TTLs are longer than the test.
func randomDialogue(random *rand.Rand, n int) (commands [][]string) {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	key := func() string { return pick("k", "k2") }
	value := func() string { return pick("a", "b", "7") }
	ttl := func() string { return strconv.Itoa(200_000 + 1000*random.IntN(100_000)) }
	command := func() []string {
		switch random.IntN(24) {
		case 0, 1:
			return []string{"SET", key(), value(), "NX", "PX", ttl()}
		case 2:
			return []string{pick("SETNX", "GETSET", "APPEND"), key(), value()}
		case 3:
			return []string{"SET", key(), value(), pick("XX", "NX", "GET", "KEEPTTL", "PXAT")}
		case 4:
			return []string{"set", key(), value(), "get", "px", ttl(), pick("nx", "xx", "get")}
		case 5:
			return []string{pick("DEL", "UNLINK", "EXISTS", "TOUCH", "MGET"), key(), key()}
		case 6, 7:
			return []string{pick("GET", "GETDEL", "STRLEN", "TYPE", "PERSIST", "INCR", "DECR"), key()}
		case 8:
			return []string{pick("MSET", "MSETNX"), key(), value(), key(), value()}
		case 9:
			return []string{"PEXPIRE", key(), ttl(), pick("NX", "XX", "GT", "LT")}
		case 10:
			return []string{pick("PEXPIRE", "PEXPIREAT"), key(), pick("0", "-1", "x")}
		case 11:
			return []string{pick("PTTL", "PEXPIRETIME"), key()}
		case 12:
			return []string{"GETEX", key(), "PX", ttl()}
		default:
			keys := []string{key()}
			if random.IntN(3) == 0 {
				keys = []string{"k", "k2"}
			}
			words := append([]string{"EVAL", pick(lockScripts...), strconv.Itoa(len(keys))}, keys...)
			return append(words, value(), ttl(), pick("0", "1"))
		}
	}
	for range n {
		switch random.IntN(12) {
		case 0:
			// Redis aborts EXEC after a write that leaves the value unchanged, but the masters do
			// not. So between has no such write.
			between := []string{pick("GET", "PTTL", "DEL", "PERSIST", "INCR"), key()}
			commands = append(commands, []string{"WATCH", key()}, between, []string{"MULTI"}, command(), command(),
				[]string{"EXEC"})
		case 1:
			commands = append(commands, []string{"MULTI"}, command(), []string{pick("EXEC", "DISCARD")})
		default:
			commands = append(commands, command())
		}
	}
	return commands
}

// repliesDiffer reports whether two replies differ. It ignores small differences of times.
func repliesDiffer(proxy, redis value) bool {
	if proxy.kind != redis.kind || len(proxy.elements) != len(redis.elements) {
		return true
	}
	for i := range proxy.elements {
		if repliesDiffer(proxy.elements[i], redis.elements[i]) {
			return true
		}
	}
	if proxy.kind == ':' {
		a, _ := strconv.ParseInt(proxy.text, 10, 64)
		b, _ := strconv.ParseInt(redis.text, 10, 64)
		return a != b && (min(a, b) < 1000 || max(a-b, b-a) > 60_000)
	}
	return proxy.kind != '*' && proxy.text != redis.text
}

// TestMastersAgainstRedis checks that one client gets the same replies from five masters as from
// one Redis, except for commands that the masters refuse.
func TestMastersAgainstRedis(t *testing.T) {
	single := startRedis(t)
	table := newClusterTable(startCluster(t, 5))
	for seed := range uint64(redistest.SampleCount(60)) {
		commands := randomDialogue(rand.New(rand.NewPCG(5, seed)), 60)
		commands = append([][]string{{"DEL", "k", "k2"}}, commands...)
		proxyReplies, executed := askMasters(t, table, commands)
		redisReplies := readReplies(t, askRedis(t, single, executed))
		for i := range executed {
			refused := strings.Contains(proxyReplies[i].text, "cannot be changed together")
			if i > 0 && !refused && repliesDiffer(proxyReplies[i], redisReplies[i]) {
				var log []string
				for j, words := range executed[:i+1] {
					log = append(log, fmt.Sprintf("%.200q  %.100q", words, redisReplies[j].raw))
				}
				t.Fatalf("seed %d:\n%s\n ours %q\nredis %q", seed, strings.Join(log, "\n"), proxyReplies[i].raw, redisReplies[i].raw)
			}
		}
	}
}

// askMasters runs the commands of a client. It returns the replies and the commands that took
// effect, with a harmless command in the place of each refused command.
func askMasters(t *testing.T, table *Table, commands [][]string) (replies []value, executedCommands [][]string) {
	out, c := command.Reply{Proto: 2}, newClient()
	for _, words := range commands {
		at := len(out.Bytes)
		runRouted(t.Context(), table, c, words, &out)
		reply := readReplies(t, string(out.Bytes[at:]))[0]
		if refused := strings.Contains(reply.text, "cannot be changed together"); refused && words[0] == "EXEC" {
			words = []string{"DISCARD"}
		} else if refused {
			words = []string{"PING"}
		}
		replies, executedCommands = append(replies, reply), append(executedCommands, words)
	}
	return replies, executedCommands
}

// TestMutualExclusion lets many clients of two proxies take and release one lock in different
// ways. It checks that two clients never hold the lock at the same time, and that each client gets
// the lock in the end.
func TestMutualExclusion(t *testing.T) {
	cluster := startCluster(t, 3)
	tables := []*Table{newClusterTable(cluster), newClusterTable(cluster)}
	ways := []struct{ take, release []string }{
		{[]string{"SET", "k", "ME", "NX", "PX", "60000"}, []string{"EVAL", releaseScript, "1", "k", "ME"}},
		{[]string{"SETNX", "k", "ME"}, []string{"DELEX", "k", "IFEQ", "ME"}},
		{[]string{"EVAL", takeOrRenew, "1", "k", "ME", "60000"}, []string{"EVAL", releaseThreeWay, "1", "k", "ME"}},
		{[]string{"EVAL", takeMany, "2", "k", "k2", "ME", "60000"}, []string{"EVAL", releaseMany, "2", "k", "k2", "ME"}},
		{[]string{"EVAL", takeTwoStep, "1", "k", "ME", "60000"}, []string{"DEL", "k"}},
	}
	const turns = 20
	var mu sync.Mutex
	holders, grants := 0, 0
	var workers sync.WaitGroup
	for i, way := range slices.Repeat(ways, 2) {
		workers.Go(func() {
			nameClient := strings.NewReplacer("ME", fmt.Sprint("client", i))
			c, out := newClient(), &command.Reply{Proto: 2}
			do := func(words []string) string {
				words = slices.Clone(words)
				for j := range words {
					words[j] = nameClient.Replace(words[j])
				}
				at := len(out.Bytes)
				runRouted(t.Context(), tables[i%2], c, words, out)
				return oneLine(t, string(out.Bytes[at:]))
			}
			for turn := 0; turn < turns; {
				got := do(way.take)
				if got != "OK" && got != "1" && got != "2" {
					if got != "0" && got != "(nil)" {
						t.Errorf("%.60q: %s", way.take, got)
						return
					}
					continue
				}
				mu.Lock()
				if holders++; holders > 1 {
					t.Errorf("%d hold the lock at once", holders)
				}
				grants++
				mu.Unlock()
				turn++
				mu.Lock()
				holders--
				mu.Unlock()
				if got := do(way.release); got == "0" || strings.Contains(got, "ERR") {
					t.Errorf("%.60q: %s", way.release, got)
					return
				}
			}
		})
	}
	workers.Wait()
	if want := turns * 2 * len(ways); grants != want {
		t.Errorf("%d grants, want %d", grants, want)
	}
}

// TestScriptsOnRealMasters checks that a script that a client loads is available at all proxies.
func TestScriptsOnRealMasters(t *testing.T) {
	cluster := startCluster(t, 3)
	one, two, c, out := newClusterTable(cluster), newClusterTable(cluster), newClient(), &command.Reply{Proto: 2}
	load := func(table *Table, words ...string) string {
		at := len(out.Bytes)
		runRouted(t.Context(), table, c, append([]string{"SCRIPT"}, words...), out)
		return oneLine(t, string(out.Bytes[at:]))
	}
	sha, _ := strconv.Unquote(load(one, "LOAD", "return {KEYS[1], 7}"))
	if got := load(two, "EXISTS", sha); got != "[1]" {
		t.Errorf("EXISTS: %s", got)
	}
	at := len(out.Bytes)
	runRouted(t.Context(), two, c, []string{"EVALSHA", sha, "1", "k"}, out)
	if got := oneLine(t, string(out.Bytes[at:])); got != `["k" 7]` {
		t.Errorf("EVALSHA: %s", got)
	}
	if got := load(one, "FLUSH"); got != "OK" {
		t.Errorf("FLUSH: %s", got)
	}
}
