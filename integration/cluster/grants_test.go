//go:build integration

package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestGrantsDuringChanges grants locks to clients of two proxies while masters of the cluster are
// killed and come back, replicas take over, and a thousand slots move, one after another. No lock
// is granted twice, and all connections to the nodes are those of the proxies.
// REDLOCK_CLUSTER_GRANTS is the number of grants.
func TestGrantsDuringChanges(t *testing.T) {
	redistest.SkipShort(t)
	wanted := int64(kit.SizeFrom(t, "REDLOCK_CLUSTER_GRANTS", 5000))
	r := startRig(t)
	second := r.cluster.StartProxy(t, redistest.URLs(r.masters), "--lock-keys", "lock:*")
	l := startLoad(t, r.proxy.Addr(), second.Addr())
	changes := []struct {
		name   string
		change func(*testing.T)
		count  int
	}{
		{name: "kill", change: func(t *testing.T) { r.killAndRestartMaster(t, l) }},
		{name: "failover", change: r.failOver},
		{name: "resharding", change: func(t *testing.T) {
			masters := r.currentMasters(t)
			i := rand.IntN(len(masters))
			r.reshard(t, masters[i], masters[(i+1)%len(masters)], 1000)
		}},
	}
	for round := 0; l.grants.Load() < wanted || round < len(changes); round++ {
		c := &changes[round%len(changes)]
		c.change(t)
		c.count++
		l.awaitWrites(t)
		r.cluster.WantOnlyFrom(t, r.proxy, second)
		if len(l.violationsSoFar()) > 0 {
			break
		}
	}
	for _, c := range changes {
		t.Logf("%d times %s", c.count, c.name)
	}
	l.end(t)
	kit.Must(t, r.cluster.CheckNoKeys("lock:*"))
}

// currentMasters returns the nodes that are masters with slots now.
func (r *rig) currentMasters(t *testing.T) (masters []*redistest.Server) {
	t.Helper()
	for _, node := range r.cluster.Nodes {
		if line := r.nodeLine(t, node, node.Addr()); strings.Contains(line[2], "master") && len(line) > 8 {
			masters = append(masters, node)
		}
	}
	return masters
}

// killAndRestartMaster kills a random master, waits until clients can write all slots, and restarts
// it. It waits until the node is a replica that is up to date.
func (r *rig) killAndRestartMaster(t *testing.T, l *load) {
	t.Helper()
	masters := r.currentMasters(t)
	master := masters[rand.IntN(len(masters))]
	kit.Must(t, master.Kill())
	l.awaitWrites(t)
	kit.Must(t, master.RestartWithData())
	r.awaitReplicas(t)
}

// failOver lets a random replica take over from its master.
func (r *rig) failOver(t *testing.T) {
	t.Helper()
	masters := r.currentMasters(t)
	var replicas []*redistest.Server
	for _, node := range r.cluster.Nodes {
		if !slices.Contains(masters, node) {
			replicas = append(replicas, node)
		}
	}
	replica := replicas[rand.IntN(len(replicas))]
	kit.Must(t, kit.SendToMaster(replica, "CLUSTER", "FAILOVER"))
	kit.Await(t, "the failover", func() bool {
		role, err := kit.QueryDatabase(replica, "0", "ROLE")
		return err == nil && strings.HasPrefix(fmt.Sprint(role), "[master")
	})
	r.awaitReplicas(t)
}

// awaitReplicas waits until all nodes agree that the cluster is healthy and has three replicas, and
// all replicas are connected to their masters.
func (r *rig) awaitReplicas(t *testing.T) {
	t.Helper()
	kit.Eventually(t, func() error {
		replicas := 0
		for _, node := range r.cluster.Nodes {
			info, err := kit.QueryDatabase(node, "0", "CLUSTER", "INFO")
			if err != nil || !strings.Contains(fmt.Sprint(info), "cluster_state:ok") {
				return fmt.Errorf("%s: %v, %v", node.Addr(), info, err)
			}
			nodes, err := kit.QueryDatabase(node, "0", "CLUSTER", "NODES")
			if text := fmt.Sprint(nodes); err != nil || strings.Contains(text, "fail") || strings.Count(text, "slave ") != 3 {
				return fmt.Errorf("%s: %v, %v", node.Addr(), nodes, err)
			}
			role, err := kit.QueryDatabase(node, "0", "INFO", "replication")
			if err != nil {
				return err
			}
			if strings.Contains(fmt.Sprint(role), "master_link_status:up") {
				replicas++
			}
		}
		if replicas != 3 {
			return fmt.Errorf("%d replicas are up to date", replicas)
		}
		return nil
	})
}

// violationsSoFar returns the violations that the clients have found so far.
func (l *load) violationsSoFar() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.violations
}
