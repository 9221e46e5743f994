//go:build integration

package cluster

import (
	"fmt"
	"net"
	"os/exec"
	"slices"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestGetCost compares the CPU time of a relayed GET at the port of a node with that at a proxy
// with a single upstream. The goal is a ratio of 1.03; the limit of the test allows for a busy
// machine.
func TestGetCost(t *testing.T) {
	redistest.SkipShort(t)
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		redistest.SkipMissing(t, "redis-benchmark")
	}
	const rounds, requests, limit = 7, 60000, 1.2
	r := startRig(t)
	single := kit.StartRedis(t)
	other := kit.StartProxy(t, redistest.URLs(r.masters), "--lock-keys", "lock:*", "--upstream", single.URL())
	master, _, id := r.firstMaster(t)
	key := "0"
	for i := 0; kit.ReplyText(kit.Do(t, kit.Dial(t, master.Addr()), "SET", key, "value")) != "OK"; i++ {
		key = fmt.Sprint(i)
	}
	kit.Must(t, kit.SendToMaster(single, "SET", key, "value"))
	_, singlePort, _ := net.SplitHostPort(other.Addr())
	cost := func(proxy *harness.Proxy, port string) float64 {
		before, err := proxy.CPU()
		kit.Must(t, err)
		output, err := exec.Command("redis-benchmark", "-p", port, "-c", "16", "-n", fmt.Sprint(requests), "-q", "GET", key).CombinedOutput()
		if err != nil {
			t.Fatalf("redis-benchmark: %v\n%s", err, output)
		}
		after, err := proxy.CPU()
		kit.Must(t, err)
		return float64(after-before) / float64(requests*time.Microsecond)
	}
	nodePort := r.portOf(t, id)
	var ratios, nodes, singles []float64
	for range rounds {
		s, n := cost(other, singlePort), cost(r.proxy, nodePort)
		singles, nodes, ratios = append(singles, s), append(nodes, n), append(ratios, n/s)
	}
	for _, all := range [][]float64{ratios, nodes, singles} {
		slices.Sort(all)
	}
	ratio := ratios[rounds/2]
	t.Logf("a GET takes %.2f µs at a node, %.2f µs with a single upstream; ratio %.3f (medians of %d)",
		nodes[rounds/2], singles[rounds/2], ratio, rounds)
	if ratio > limit {
		t.Errorf("the ratio is over %.2f: %.3f", limit, ratios)
	}
}
