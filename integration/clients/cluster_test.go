//go:build integration

package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// clusterClient runs a command on a key with the cluster client of a library, and returns the reply
// or the error as a text.
type clusterClient func(key string, words ...string) string

// clusterLibrary is a library with a cluster client.
type clusterLibrary struct {
	name string
	// connect returns a client that initially knows only one node. The test's end closes it.
	connect func(t *testing.T, addr string) clusterClient
}

func clusterLibraries() []clusterLibrary {
	script := func(language, file string, args ...string) func(*testing.T, string) clusterClient {
		return func(t *testing.T, addr string) clusterClient {
			command := append([]string{findProgram(t, language).interpreter(t), programPath(file)}, args...)
			return connectProgram(t, addr, command)
		}
	}
	return []clusterLibrary{
		{name: "go-redis", connect: connectGoRedis}, {name: "rueidis", connect: connectRueidis},
		{name: "valkey-go", connect: connectValkeyGo}, {name: "redis-py", connect: script("python", "python/cluster.py")},
		{name: "redis-rb", connect: script("ruby", "ruby/cluster.rb")},
		{name: "phpredis", connect: script("php", "php/cluster.php", "phpredis")},
		{name: "Predis", connect: func(t *testing.T, addr string) clusterClient {
			return connectProgram(t, addr, []string{phpLocks(t)[0], programPath("php/cluster.php"), "predis"})
		}},
		{name: "node-redis", connect: script("node", "node/cluster.js")}, {name: "redis-cli", connect: connectRedisCLI},
	}
}

// connectProgram starts a program that reads commands.
func connectProgram(t *testing.T, addr string, command []string) clusterClient {
	d := startDriver(t, addr, "cluster", command...)
	return func(key string, words ...string) string {
		line, err := json.Marshal(append([]string{key}, words...))
		kit.Must(t, err)
		reply, err := d.ask(string(line))
		if err != nil {
			return "error: " + err.Error()
		}
		return reply
	}
}

func connectGoRedis(t *testing.T, addr string) clusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
	t.Cleanup(func() { _ = client.Close() })
	return func(_ string, words ...string) string {
		args := make([]any, len(words))
		for i := range words {
			args[i] = words[i]
		}
		return textOf(client.Do(context.Background(), args...).Result())
	}
}

func connectRueidis(t *testing.T, addr string) clusterClient {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	kit.Must(t, err)
	t.Cleanup(client.Close)
	return func(key string, words ...string) string {
		at := slices.Index(words, key)
		command := client.B().Arbitrary(words[:at]...).Keys(key).Args(words[at+1:]...).Build()
		return textOf(client.Do(context.Background(), command).ToAny())
	}
}

func connectValkeyGo(t *testing.T, addr string) clusterClient {
	client, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{addr}})
	kit.Must(t, err)
	t.Cleanup(client.Close)
	return func(key string, words ...string) string {
		at := slices.Index(words, key)
		command := client.B().Arbitrary(words[:at]...).Keys(key).Args(words[at+1:]...).Build()
		return textOf(client.Do(context.Background(), command).ToAny())
	}
}

// connectRedisCLI returns a client that runs redis-cli for each command, and follows MOVED.
func connectRedisCLI(t *testing.T, addr string) clusterClient {
	_, port, err := net.SplitHostPort(addr)
	kit.Must(t, err)
	return func(_ string, words ...string) string {
		output, err := exec.Command("redis-cli", append([]string{"-c", "-p", port}, words...)...).CombinedOutput()
		return textOf(strings.TrimSpace(string(output)), err)
	}
}

func textOf(reply any, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprint(reply)
}

// replies runs commands of each kind on keys of many slots, and returns the replies. The keys have
// the prefix data, and the locks have the prefix lock. One lock remains: lock + "kept", with the
// token a.
func (run clusterClient) replies(data, lock string) string {
	const release = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	var all []string
	add := func(key string, words ...string) { all = append(all, run(key, words...)) }
	for i := range 20 {
		key := fmt.Sprint(data, i)
		add(key, "SET", key, fmt.Sprint(i))
		add(key, "INCRBY", key, "100")
		add(key, "GET", key)
	}
	key, list, tagged := data+"0", data+"list", "{"+data+"}"
	add(key, "LPUSH", key, "x")
	add(list, "RPUSH", list, "a", "b")
	add(list, "LRANGE", list, "0", "-1")
	add(data+"none", "GET", data+"none")
	add(tagged+"1", "MSET", tagged+"1", "x", tagged+"2", "y")
	add(tagged+"1", "MGET", tagged+"1", tagged+"3", tagged+"2")
	add(key, "EVAL", "return {redis.call('get',KEYS[1]),ARGV[1],7}", "1", key, "z")
	for _, name := range []string{"1", "2", "3", "kept"} {
		key := lock + name
		add(key, "SET", key, "a", "NX", "PX", "600000")
		add(key, "SET", key, "b", "NX", "PX", "600000")
		add(key, "GET", key)
		add(key, "EVAL", release, "1", key, "b")
		if name != "kept" {
			add(key, "EVAL", release, "1", key, "a")
		}
	}
	return strings.Join(all, "\n")
}

// TestCluster lets the cluster client of each library use a cluster through a proxy, which is the
// only node that the client knows. It does so before any change, after a replica has taken over,
// and after a master was killed. Each reply must be that of the cluster itself. No client may
// connect to a node, and all locks must be on the masters.
func TestCluster(t *testing.T) {
	redistest.SkipShort(t)
	cluster := kit.StartCluster(t, redistest.InstalledVersion)
	masters := kit.StartMasters(t)
	proxy := cluster.StartProxy(t, redistest.URLs(masters), "--lock-keys", "lock:*")
	direct, clients := map[string]string{}, map[string]clusterClient{}
	for _, library := range clusterLibraries() {
		t.Run(library.name, func(t *testing.T) {
			run := library.connect(t, cluster.Nodes[0].Addr())
			direct[library.name] = run.replies("direct:"+library.name+":", "held:"+library.name+":")
		})
	}
	for _, library := range clusterLibraries() {
		if direct[library.name] != "" { // else its program is missing
			clients[library.name] = library.connect(t, proxy.Addr())
		}
	}
	check := func(phase string) {
		for name, run := range clients {
			t.Run(phase+"/"+name, func(t *testing.T) {
				attempt, prefix := 0, ""
				kit.Eventually(t, func() error {
					attempt++
					prefix = fmt.Sprint(name, ":", phase, ":", attempt, ":")
					if got := run.replies(prefix, "lock:"+prefix); got != direct[name] {
						return fmt.Errorf("the replies are\n%s\nthose of the cluster are\n%s", got, direct[name])
					}
					return nil
				})
				kit.Must(t, kit.CheckMajority(masters, "lock:"+prefix+"kept", "a"))
				t.Logf("%d replies as those of the cluster, attempt %d", strings.Count(direct[name], "\n")+1, attempt)
			})
		}
		kit.Must(t, cluster.CheckNoKeys("lock:*"))
		cluster.WantOnlyFrom(t, proxy)
	}
	check("start")
	replica := cluster.Nodes[3]
	killedID, err := kit.QueryDatabase(replica, "0", "CLUSTER", "MYID")
	kit.Must(t, err)
	kit.Must(t, kit.SendToMaster(replica, "CLUSTER", "FAILOVER"))
	// Wait until the former master is listed as a replica: phpredis 5.3 crashes if a node names one
	// that no CLUSTER SLOTS has listed.
	kit.Await(t, "the failover", func() bool {
		role, err := kit.QueryDatabase(replica, "0", "ROLE")
		return err == nil && strings.HasPrefix(fmt.Sprint(role), "[master") &&
			!slices.ContainsFunc(cluster.Nodes, func(node *redistest.Server) bool {
				slots, err := kit.QueryDatabase(node, "0", "CLUSTER", "SLOTS")
				return err != nil || strings.Count(fmt.Sprint(slots), "127.0.0.1") < len(cluster.Nodes)
			})
	})
	check("failover")
	kit.Must(t, replica.Kill())
	kit.Await(t, "the failover to the former master", func() bool {
		return !slices.ContainsFunc(cluster.Nodes, func(node *redistest.Server) bool {
			if node == replica {
				return false
			}
			slots, err := kit.QueryDatabase(node, "0", "CLUSTER", "SLOTS")
			info, err2 := kit.QueryDatabase(node, "0", "CLUSTER", "INFO")
			return errors.Join(err, err2) != nil || !strings.Contains(fmt.Sprint(info), "cluster_state:ok") ||
				strings.Contains(fmt.Sprint(slots), fmt.Sprint(killedID))
		})
	})
	kit.Eventually(t, func() error { // the proxy tells new clients the current nodes
		reply, err := kit.Connect(t, proxy).Do("CLUSTER", "SLOTS")
		if text := fmt.Sprint(reply); err == nil && (!strings.HasPrefix(text, "[[") || strings.Contains(text, fmt.Sprint(killedID))) {
			err = fmt.Errorf("CLUSTER SLOTS: %v", reply)
		}
		return err
	})
	check("kill")
}
