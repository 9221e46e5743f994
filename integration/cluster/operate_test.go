//go:build integration

package cluster

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestOperation covers the operation of a proxy for a cluster: PROXY INFO, the metrics, /readyz,
// the command check, and a drain with clients at the ports of nodes.
func TestOperation(t *testing.T) {
	r := startRig(t, "--admin", "127.0.0.1:0", "--drain-timeout", "5s")
	client := kit.Connect(t, r.proxy)
	info := ""
	kit.Eventually(t, func() error {
		info = fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		if strings.Count(info, "state=up") != 6 {
			return fmt.Errorf("not all nodes are up:\n%s", info)
		}
		return nil
	})
	for _, want := range []string{"upstream_address:cluster of 6 nodes", "upstream_state:up", "upstream_slots_uncovered:0", "upstream_nodes:6"} {
		if !strings.Contains(info, want+"\r\n") {
			t.Errorf("PROXY INFO lacks %s:\n%s", want, info)
		}
	}
	if masters := strings.Count(info, "role=master"); masters != 3 {
		t.Errorf("%d masters", masters)
	}
	node := regexp.MustCompile(`address=([^,]+),listen=(\d+),role=master`).FindStringSubmatch(info)
	atNode := kit.Dial(t, "127.0.0.1:"+node[2])
	kit.Want(t, atNode, "PONG", "PING")
	line, err := r.proxy.WaitLog("serving health and metrics", kit.WaitLimit)
	kit.Must(t, err)
	admin := regexp.MustCompile(`admin=(\S+)`).FindStringSubmatch(line)[1]
	for _, want := range []string{
		fmt.Sprintf("redlock_cluster_node_up{node=%q} 1", node[1]),
		fmt.Sprintf("redlock_cluster_node_client_connections{node=%q} 1", node[1]), "redlock_cluster_slots_uncovered 0",
		"redlock_upstream_up 1", "redlock_client_connections 2",
	} {
		if text := get(t, "http://"+admin+"/metrics"); !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if text := get(t, "http://"+admin+"/readyz?verbose"); !strings.Contains(text, "upstream") {
		t.Errorf("/readyz: %s", text)
	}
	output, err := kit.ProxyCommand(t, "check", "--master", r.masters[0].URL(), "--master", r.masters[1].URL(), "--master",
		r.masters[2].URL(), "--lock-keys", "lock:*", "--upstream", r.cluster.URL()).CombinedOutput()
	if text := string(output); err != nil || !strings.Contains(text, "verdict: ok") {
		t.Errorf("check: %v\n%s", err, text)
	}
	// check finds locks that clients took directly on the cluster, on all its nodes.
	for _, node := range r.cluster.Nodes[:3] {
		for i := range 100 {
			_, _ = kit.QueryDatabase(node, "0", "SET", fmt.Sprint("lock:direct:", i), "x", "PX", "60000")
		}
	}
	output, _ = kit.ProxyCommand(t, "check", "--master", r.masters[0].URL(), "--master", r.masters[1].URL(), "--master",
		r.masters[2].URL(), "--lock-keys", "lock:*", "--upstream", r.cluster.URL()).CombinedOutput()
	if text := string(output); !strings.Contains(text, "100 lock keys") {
		t.Errorf("check of a cluster with lock keys:\n%s", text)
	}
	kit.Must(t, r.proxy.Signal(syscall.SIGTERM))
	began := time.Now()
	if code, err := r.proxy.Wait(kit.WaitLimit); err != nil || code != 0 || time.Since(began) > 5*time.Second {
		t.Errorf("the proxy ended with %d, %v, after %v", code, err, time.Since(began))
	}
	if reply, err := atNode.Do("PING"); err == nil {
		t.Errorf("a drained node answers %v", reply)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	kit.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	kit.Must(t, err)
	return string(text)
}

// TestUncoveredSlots checks that the proxy reports slots that no node serves.
func TestUncoveredSlots(t *testing.T) {
	r := startRig(t)
	kit.Must(t, kit.SendToMaster(r.cluster.Nodes[0], "CLUSTER", "DELSLOTSRANGE", "0", "9"))
	for _, node := range r.cluster.Nodes[1:] {
		_ = kit.SendToMaster(node, "CLUSTER", "DELSLOTSRANGE", "0", "9")
	}
	client := kit.Connect(t, r.proxy)
	kit.Eventually(t, func() error {
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		if !strings.Contains(info, "upstream_slots_uncovered:10\r\n") || !strings.Contains(info, "upstream_cause:10 of 16384 slots are not served") {
			return fmt.Errorf("the slots are not missing:\n%s", info)
		}
		return nil
	})
}

// TestReload changes the login of the proxy at the nodes while the proxy runs.
func TestReload(t *testing.T) {
	cluster := kit.StartCluster(t, redistest.InstalledVersion)
	for _, node := range cluster.Nodes {
		kit.Must(t, kit.SendToMaster(node, "ACL", "SETUSER", "proxy", "on", ">old", ">new", "~*", "&*", "+@all"))
	}
	file := t.TempDir() + "/conf.yaml"
	write := func(password, ports string) {
		text := fmt.Sprintf("master: [%s]\nupstream: %s\nshare-upstream-login: true\nlisten: 127.0.0.1:0\ncluster-ports: %s\n"+
			"lock-keys: ['lock:*']\nfresh-start: true\n", kit.StartRedis(t).URL(),
			strings.Replace(cluster.URL(), "://", "://proxy:"+password+"@", 1), ports)
		kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	first := kit.FreePort(t)
	write("old", first+"-32767")
	proxy, err := harness.StartProxy(harness.ProxyOptions{Config: file})
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, proxy.Close()) })
	client := kit.Connect(t, proxy)
	kit.WantPrefix(t, client, "ACL WHOAMI", "proxy")
	text, err := os.ReadFile(file)
	kit.Must(t, err)
	kit.Must(t, os.WriteFile(file, []byte(strings.Replace(string(text), ":old@", ":new@", 1)), 0o600))
	kit.WantPrefix(t, client, "PROXY RELOAD", "[changed [upstream: changed]")
	for _, node := range cluster.Nodes {
		kit.Must(t, kit.SendToMaster(node, "ACL", "SETUSER", "proxy", "<old"))
	}
	ports := regexp.MustCompile(`listen=(\d+)`).FindAllStringSubmatch(fmt.Sprint(kit.Do(t, client, "PROXY", "INFO")), -1)
	if len(ports) != 6 {
		t.Errorf("%d nodes", len(ports))
	}
	for _, port := range ports {
		kit.WantPrefix(t, kit.Dial(t, "127.0.0.1:"+port[1]), "ACL WHOAMI", "proxy")
	}
}
