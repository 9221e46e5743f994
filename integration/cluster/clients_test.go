//go:build integration

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// rig holds a cluster, a proxy for it, and masters for the locks.
type rig struct {
	cluster *kit.Cluster
	masters []*redistest.Server
	proxy   *harness.Proxy
}

func startRig(t *testing.T, args ...string) *rig {
	t.Helper()
	return startRigOf(t, redistest.InstalledVersion, args...)
}

// startRigOf does the same as startRig, with nodes of the given version.
func startRigOf(t *testing.T, version string, args ...string) *rig {
	t.Helper()
	return startRigAt(t, kit.StartCluster(t, version), args...)
}

// startRigAt starts a proxy for a cluster, and the masters for its locks.
func startRigAt(t *testing.T, cluster *kit.Cluster, args ...string) *rig {
	t.Helper()
	r := &rig{cluster: cluster}
	for range 3 {
		r.masters = append(r.masters, kit.StartRedis(t))
	}
	r.proxy = cluster.StartProxy(t, redistest.URLs(r.masters), append([]string{"--lock-keys", "lock:*"}, args...)...)
	return r
}

// wantLocksAtMasters fails the test unless a majority of the masters holds the key, and no node of
// the cluster has a lock key.
func (r *rig) wantLocksAtMasters(t *testing.T, key, token string) {
	t.Helper()
	kit.Must(t, kit.CheckMajority(r.masters, key, token))
	kit.Must(t, r.cluster.CheckNoKeys("lock:*"))
}

// nodeAddrs returns the addresses of all nodes.
func (r *rig) nodeAddrs() (addrs []string) {
	for _, node := range r.cluster.Nodes {
		addrs = append(addrs, node.Addr())
	}
	return addrs
}

// wantNoNodeIn fails the test if a text contains the address of a node.
func (r *rig) wantNoNodeIn(t *testing.T, subject, text string) {
	t.Helper()
	for _, addr := range r.nodeAddrs() {
		_, port, _ := net.SplitHostPort(addr)
		if strings.Contains(text, port) {
			t.Errorf("%s names the node %s:\n%s", subject, addr, text)
		}
	}
}

// TestVersions lets clients use clusters of the oldest and newest Redis and Valkey.
func TestVersions(t *testing.T) {
	redistest.SkipShort(t)
	for _, version := range redistest.OldestAndNewest() {
		t.Run(version, func(t *testing.T) {
			r := startRigOf(t, version)
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{r.proxy.Addr()}})
			defer client.Close()
			other, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{r.proxy.Addr()}, DisableCache: true,
				AlwaysRESP2: true})
			kit.Must(t, err)
			defer other.Close()
			for i := range 50 {
				key, lock := fmt.Sprint("data:", i), fmt.Sprint("lock:", i)
				kit.Must(t, client.Set(t.Context(), key, "v", 0).Err())
				if got, err := other.Do(t.Context(), other.B().Get().Key(key).Build()).ToString(); err != nil || got != "v" {
					t.Fatalf("%s: %s, %v", key, got, err)
				}
				if granted, err := client.SetNX(t.Context(), lock, "a", time.Minute).Result(); err != nil || !granted {
					t.Fatalf("%s: %t, %v", lock, granted, err)
				}
				err := other.Do(t.Context(), other.B().Set().Key(lock).Value("b").Nx().Px(time.Minute).Build()).Error()
				if !rueidis.IsRedisNil(err) {
					t.Fatalf("%s is granted twice: %v", lock, err)
				}
			}
			r.wantLocksAtMasters(t, "lock:7", "a")
			r.cluster.WantOnlyFrom(t, r.proxy)
			plain := kit.Connect(t, r.proxy)
			for _, command := range []string{"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "ROLE", "INFO", "CLUSTER LINKS"} {
				r.wantNoNodeIn(t, command, fmt.Sprint(kit.Do(t, plain, strings.Fields(command)...)))
			}
		})
	}
}

// TestGoRedis lets a ClusterClient that knows only the proxy write and read data, and lock.
func TestGoRedis(t *testing.T) {
	r := startRig(t)
	for _, protocol := range []int{2, 3} {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{r.proxy.Addr()}, Protocol: protocol, RouteRandomly: true,
		})
		for i := range 200 {
			key, value := fmt.Sprint("data:", protocol, ":", i), fmt.Sprint(i)
			kit.Must(t, client.Set(t.Context(), key, value, 0).Err())
			// The client may read from a replica that has not received the value yet.
			kit.Eventually(t, func() error {
				got, err := client.Get(t.Context(), key).Result()
				if err == nil && got != value || errors.Is(err, redis.Nil) {
					err = fmt.Errorf("%s is %q", key, got)
				}
				return err
			})
		}
		for i := range 20 {
			key := fmt.Sprint("lock:", protocol, ":", i)
			granted, err := client.SetNX(t.Context(), key, "a", time.Minute).Result()
			if err != nil || !granted {
				t.Fatalf("%s: %t, %v", key, granted, err)
			}
			r.wantLocksAtMasters(t, key, "a")
			if granted, err := client.SetNX(t.Context(), key, "b", time.Minute).Result(); err != nil || granted {
				t.Fatalf("%s is granted twice: %v", key, err)
			}
		}
		_, err := client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Set(t.Context(), "{tag}1", "1", 0)
			p.Set(t.Context(), "{tag}2", "2", 0)
			return nil
		})
		kit.Must(t, err)
		_, err = client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := range 100 {
				p.Incr(t.Context(), fmt.Sprint("count:", protocol, i))
			}
			return nil
		})
		kit.Must(t, err)
		r.cluster.WantOnlyFrom(t, r.proxy)
		kit.Must(t, client.Close())
	}
}

// TestRueidis does the same as TestGoRedis with rueidis, which learns the nodes by CLUSTER SHARDS.
func TestRueidis(t *testing.T) {
	redistest.SkipShort(t)
	r := startRig(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{r.proxy.Addr()}, DisableCache: true})
	kit.Must(t, err)
	defer client.Close()
	for i := range 200 {
		key := fmt.Sprint("data:", i)
		kit.Must(t, client.Do(t.Context(), client.B().Set().Key(key).Value("v").Build()).Error())
		if got, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString(); err != nil || got != "v" {
			t.Fatalf("%s: %s, %v", key, got, err)
		}
	}
	for i := range 20 {
		key := fmt.Sprint("lock:", i)
		kit.Must(t, client.Do(t.Context(), client.B().Set().Key(key).Value("a").Nx().Px(time.Minute).Build()).Error())
		r.wantLocksAtMasters(t, key, "a")
	}
	r.cluster.WantOnlyFrom(t, r.proxy)
}

// pythonScript uses redis-py's RedisCluster, with the port of the proxy as its argument.
const pythonScript = `
import sys
from redis.cluster import RedisCluster
client = RedisCluster(host="127.0.0.1", port=int(sys.argv[1]))
for i in range(200):
    client.set(f"data:{i}", str(i))
    assert client.get(f"data:{i}") == str(i).encode(), i
for i in range(20):
    assert client.set(f"lock:{i}", "a", nx=True, px=60000), i
    assert not client.set(f"lock:{i}", "b", nx=True, px=60000), i
print(sorted(node.port for node in client.get_nodes()))
input()
`

// TestRedisPy does the same as TestGoRedis with redis-py.
func TestRedisPy(t *testing.T) {
	redistest.SkipShort(t)
	python := findPython(t)
	r := startRig(t)
	script := filepath.Join(t.TempDir(), "cluster.py")
	kit.Must(t, os.WriteFile(script, []byte(pythonScript), 0o600))
	_, port, _ := net.SplitHostPort(r.proxy.Addr())
	command := exec.Command(python, script, port)
	input, err := command.StdinPipe()
	kit.Must(t, err)
	output, err := command.StdoutPipe()
	kit.Must(t, err)
	command.Stderr = os.Stderr
	kit.Must(t, command.Start())
	line := make([]byte, 1000)
	n, _ := output.Read(line)
	r.cluster.WantOnlyFrom(t, r.proxy)
	r.wantNoNodeIn(t, "redis-py", string(line[:n]))
	if strings.Count(string(line[:n]), ",") != 5 {
		t.Errorf("redis-py knows the nodes %s", line[:n])
	}
	_, _ = input.Write([]byte("\n"))
	kit.Must(t, command.Wait())
	r.wantLocksAtMasters(t, "lock:7", "a")
}

// findPython returns a Python that has redis-py with clusters.
func findPython(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "from redis.cluster import RedisCluster").Run() == nil {
			return name
		}
	}
	redistest.SkipMissing(t, "redis-py: apt-get install python3-redis")
	return ""
}

// TestRedisCLI does the same as TestGoRedis with redis-cli, which follows MOVED.
func TestRedisCLI(t *testing.T) {
	r := startRig(t)
	_, port, _ := net.SplitHostPort(r.proxy.Addr())
	cli := func(words ...string) string {
		return strings.TrimSpace(r.cluster.Run(t, append([]string{"-c", "-p", port}, words...)...))
	}
	for i := range 20 {
		key := fmt.Sprint("data:", i)
		if got := cli("SET", key, strconv.Itoa(i)); got != "OK" {
			t.Fatalf("%s: %s", key, got)
		}
		if got := cli("GET", key); got != strconv.Itoa(i) {
			t.Fatalf("%s: %s", key, got)
		}
	}
	if got := cli("SET", "lock:1", "a", "NX", "PX", "60000"); got != "OK" {
		t.Errorf("a lock: %s", got)
	}
	r.wantLocksAtMasters(t, "lock:1", "a")
	// redis-cli follows MOVED, and waits at the node of the key.
	waiting := exec.Command("redis-cli", "-c", "-p", port, "BLPOP", "waiting", "0")
	kit.Must(t, waiting.Start())
	kit.Await(t, "the waiting client", func() bool {
		return slices.ContainsFunc(r.cluster.Nodes, func(node *redistest.Server) bool {
			info, err := kit.QueryDatabase(node, "0", "INFO", "clients")
			return err == nil && strings.Contains(fmt.Sprint(info), "blocked_clients:1")
		})
	})
	r.cluster.WantOnlyFrom(t, r.proxy)
	cli("RPUSH", "waiting", "x")
	kit.Must(t, waiting.Wait())
	plain := strings.TrimSpace(r.cluster.Run(t, "-p", port, "SET", "data:1", "x") + r.cluster.Run(t, "-p", port, "SET", "data:2", "x") +
		r.cluster.Run(t, "-p", port, "SET", "data:3", "x"))
	if !strings.Contains(plain, "MOVED ") {
		t.Errorf("a plain client gets no MOVED: %s", plain)
	}
	r.wantNoNodeIn(t, "MOVED", plain)
}

// TestReplies checks that replies to commands about the nodes contain no address of a node, and
// that the proxy refuses these commands in MULTI.
func TestReplies(t *testing.T) {
	r := startRig(t)
	client := kit.Connect(t, r.proxy)
	for _, protocol := range []string{"2", "3"} {
		kit.Do(t, client, "HELLO", protocol)
		for _, command := range []string{
			"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "ROLE", "INFO", "INFO replication", "INFO server",
		} {
			r.wantNoNodeIn(t, command, fmt.Sprint(kit.Do(t, client, strings.Fields(command)...)))
		}
		masterID := fmt.Sprint(kit.Do(t, client, "CLUSTER", "MYID"))
		replicas := fmt.Sprint(kit.Do(t, client, "CLUSTER", "REPLICAS", masterID))
		if r.wantNoNodeIn(t, "CLUSTER REPLICAS", replicas); !strings.Contains(replicas, masterID) {
			t.Errorf("CLUSTER REPLICAS: %s", replicas)
		}
		for _, command := range []string{"CLUSTER SLOTS", "INFO", "ROLE"} {
			kit.WantPrefix(t, client, "MULTI", "OK")
			kit.WantPrefix(t, client, command, "ERR "+strings.Fields(command)[0]+" inside MULTI is not allowed")
			kit.WantPrefix(t, client, "EXEC", "EXECABORT")
		}
		kit.WantPrefix(t, client, "CLUSTER WHAT", "ERR ")
		kit.WantPrefix(t, client, "CLUSTER KEYSLOT a", "15495")
	}
	for command, next := range map[string]string{"PROXY MOVE": "set lock-keys", "PROXY MOVE BACK": "remove lock-keys"} {
		text := kit.ReplyText(kit.Do(t, client, strings.Fields(command)...))
		if !strings.HasPrefix(text, "ERR cannot move locks: the upstream is a cluster") || !strings.Contains(text, next) {
			t.Errorf("%s: %s", command, text)
		}
	}
	nodes := fmt.Sprint(kit.Do(t, client, "CLUSTER", "NODES"))
	if got := strings.Count(nodes, "\n"); got != 6 {
		t.Errorf("%d nodes:\n%s", got, nodes)
	}
	// The proxy also translates addresses in the errors that a script returns, even within EXEC.
	target := r.cluster.Nodes[1].Addr()
	script := "return redis.error_reply('MOVED 1 " + target + "')"
	r.wantNoNodeIn(t, "EVAL", kit.ReplyText(kit.Do(t, client, "EVAL", script, "0")))
	kit.WantPrefix(t, client, "MULTI", "OK")
	kit.WantPrefix(t, client, "EVAL|"+script+"|0", "QUEUED")
	reply := fmt.Sprint(kit.Do(t, client, "EXEC"))
	if r.wantNoNodeIn(t, "EXEC", reply); !strings.Contains(reply, "MOVED 1 127.0.0.1:") {
		t.Errorf("EXEC: %s", reply)
	}
	kit.WantPrefix(t, client, "EVAL|return redis.error_reply('MOVED 1 10.1.1.1:1')|0", "TRYAGAIN ")
}

// TestStreams checks that no client learns the address of a node after commands that keep the proxy
// from matching replies with commands. The proxy still translates redirects, and closes the
// connection if it would have to translate another reply.
func TestStreams(t *testing.T) {
	r := startRig(t)
	for _, protocol := range []string{"2", "3"} {
		for _, before := range [][]string{
			{"CLIENT REPLY SKIP", "UNSUBSCRIBE"}, {"MULTI", "SUBSCRIBE x", "EXEC", "UNSUBSCRIBE x"},
			{"CLIENT REPLY SKIP", "MULTI", "EXEC"}, {"CLIENT REPLY SKIP", "PSYNC x"},
		} {
			for _, last := range []string{"", "CLUSTER SLOTS", "CLUSTER NODES", "CLUSTER WHAT", "INFO replication", "ROLE"} {
				client, sent := kit.Connect(t, r.proxy), []byte{}
				commands := slices.Concat([]string{"HELLO " + protocol}, before, []string{"GET a", "GET b", "GET c", last})
				for _, command := range commands {
					if command != "" {
						sent = redistest.AppendCommand(sent, strings.Fields(command)...)
					}
				}
				kit.Must(t, client.Send(sent))
				kit.Must(t, client.CloseWrite())
				replies, err := client.ReceiveAll()
				if last == "" {
					kit.Must(t, err)
				}
				subject := fmt.Sprint(commands)
				r.wantNoNodeIn(t, subject, string(replies))
				if moved := strings.Count(string(replies), "-MOVED "); moved < 1 && last == "" {
					t.Errorf("%s: no redirect: %q", subject, replies)
				}
			}
		}
	}
}

// TestKeysByNode checks that each lock key appears, and is flushed, at the port of exactly one
// node.
func TestKeysByNode(t *testing.T) {
	r := startRig(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{r.proxy.Addr()}})
	defer client.Close()
	const count = 60
	for i := range count {
		kit.Must(t, client.SetNX(t.Context(), fmt.Sprint("lock:", i), "a", time.Minute).Err())
		kit.Must(t, client.Set(t.Context(), fmt.Sprint("data:", i), "a", 0).Err())
	}
	var mu sync.Mutex
	list := func(pattern string) (keys, scanned map[string]int, size int64) {
		keys, scanned = map[string]int{}, map[string]int{}
		kit.Must(t, client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
			found, err := node.Keys(ctx, pattern).Result()
			n, err2 := node.DBSize(ctx).Result()
			mu.Lock()
			defer mu.Unlock()
			size += n
			for _, key := range found {
				keys[key]++
			}
			all := node.Scan(ctx, 0, pattern, 10).Iterator()
			for all.Next(ctx) {
				scanned[all.Val()]++
			}
			return errors.Join(err, err2, all.Err())
		}))
		return keys, scanned, size
	}
	keys, scanned, size := list("*")
	if len(keys) != 2*count || len(scanned) != 2*count || size != 2*count {
		t.Errorf("%d keys, %d scanned, size %d; want %d", len(keys), len(scanned), size, 2*count)
	}
	for key, n := range keys {
		if n != 1 || scanned[key] != 1 {
			t.Errorf("%s is listed %d times, scanned %d times", key, n, scanned[key])
		}
	}
	// A script on a lock key lists the lock keys of its node.
	inScripts := map[string]int{}
	scriptSize := int64(0)
	kit.Must(t, client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		listed, err := node.Eval(ctx, "return {redis.call('KEYS',ARGV[1]),redis.call('SCAN','0','MATCH',ARGV[1],'COUNT',1000)[2]}",
			[]string{"lock:0"}, "lock:*").Slice()
		size, err2 := node.Eval(ctx, "return redis.call('DBSIZE')", []string{"data:script"}).Int64()
		if moved := redis.HasErrorPrefix(err2, "MOVED"); moved { // only the node of the key runs the script
			err2 = nil
		}
		mu.Lock()
		defer mu.Unlock()
		scriptSize += size
		for _, list := range listed {
			for _, key := range list.([]any) {
				inScripts[key.(string)]++
			}
		}
		return errors.Join(err, err2)
	}))
	if len(inScripts) != count || scriptSize == 0 || scriptSize >= count {
		t.Errorf("scripts list %d lock keys, want %d; DBSIZE at a node is %d, want its data", len(inScripts), count, scriptSize)
	}
	for key, n := range inScripts {
		if n != 2 { // once by KEYS, once by SCAN
			t.Errorf("%s is listed %d times by scripts", key, n)
		}
	}
	// A flush at one node must not remove the locks of the other nodes.
	var flushMu sync.Mutex
	flushed := false
	kit.Must(t, client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		flushMu.Lock()
		defer flushMu.Unlock()
		if flushed {
			return nil
		}
		flushed = true
		return node.FlushAll(ctx).Err()
	}))
	keys, _, _ = list("lock:*")
	if len(keys) == 0 || len(keys) == count {
		t.Errorf("%d lock keys are left of %d", len(keys), count)
	}
	kit.Must(t, client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error { return node.FlushAll(ctx).Err() }))
	if keys, _, _ = list("*"); len(keys) > 0 {
		t.Errorf("left are %v", keys)
	}
}
