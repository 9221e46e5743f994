//go:build integration

package lockkeys

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestEmulatedCluster checks that clients that support only clusters can lock at lock servers. Each
// lock server claims to be a cluster of one node. Two of these clients exclude each other.
func TestEmulatedCluster(t *testing.T) {
	masters := redistest.URLs([]*redistest.Server{kit.StartRedis(t), kit.StartRedis(t), kit.StartRedis(t)})
	args := []string{"--lock-keys", "lock:*", "--cluster-mode", "emulated"}
	firstProxy, secondProxy := kit.StartProxy(t, masters, args...), kit.StartProxy(t, masters, args...)

	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{firstProxy.Addr()}})
	defer cluster.Close()
	rueidisClient, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{secondProxy.Addr()}, ShuffleInit: true,
		DisableCache: true})
	kit.Must(t, err)
	defer rueidisClient.Close()
	for i := range 20 {
		key := fmt.Sprint("lock:", i)
		granted, err := cluster.SetNX(t.Context(), key, "a", time.Minute).Result()
		if err != nil || !granted {
			t.Fatalf("%s: %v, %v", key, granted, err)
		}
		err = rueidisClient.Do(t.Context(), rueidisClient.B().Set().Key(key).Value("b").Nx().Px(time.Minute).Build()).Error()
		if !rueidis.IsRedisNil(err) {
			t.Fatalf("%s is granted twice: %v", key, err)
		}
	}
	if output, err := exec.Command("redis-cli", "-c", "-p", firstProxy.Addr()[strings.LastIndex(firstProxy.Addr(), ":")+1:],
		"SET", "lock:7", "c", "NX", "PX", "1000").CombinedOutput(); err != nil || strings.Contains(string(output), "OK") {
		t.Errorf("redis-cli: %v, %s", err, output)
	}

	host, port, _ := strings.Cut(firstProxy.Addr(), ":")
	client := kit.Connect(t, firstProxy)
	kit.WantPrefix(t, client, "CLUSTER SLOTS", fmt.Sprintf("[[0 16383 [%s %s ", host, port))
	kit.WantPrefix(t, client, "CLUSTER INFO", "cluster_state:ok")
	kit.WantPrefix(t, client, "READONLY", "OK")
	if nodes := fmt.Sprint(kit.Do(t, client, "CLUSTER", "NODES")); !strings.Contains(nodes, firstProxy.Addr()+"@") ||
		strings.Contains(nodes, secondProxy.Addr()) {
		t.Errorf("the nodes are %s", nodes)
	}
	standaloneClient := kit.Connect(t, kit.StartProxy(t, masters, "--lock-keys", "lock:*"))
	kit.WantPrefix(t, standaloneClient, "CLUSTER SLOTS", "ERR This instance has cluster support disabled")
}
