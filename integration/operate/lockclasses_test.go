//go:build integration

package operate

import (
	"fmt"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// classMetrics returns the names of the metrics of a class: the numbers of waits, of measured
// holds, of renewals, and of losses for a reason.
func classMetrics(class, reason string) (waits, holds, renewals, losses string) {
	label := fmt.Sprintf("{class=%q}", class)
	return "redlock_lock_wait_seconds_count" + label, "redlock_lock_held_seconds_count" + label,
		"redlock_lock_renewals_total" + label, fmt.Sprintf("redlock_kept_locks_lost_total{class=%q,reason=%q}", class, reason)
}

// wantMetric waits until a metric has a value. The proxy may count an event after its reply.
func wantMetric(t *testing.T, proxy *harness.Proxy, name string, want float64) {
	t.Helper()
	kit.Eventually(t, func() error {
		got, exists := metricsOf(t, adminAddr(t, proxy))[name]
		if !exists || got != want {
			return fmt.Errorf("%s is %v (%v), want %v", name, got, exists, want)
		}
		return nil
	})
}

// TestMetricsByClass checks that locks that are held, waited for, renewed and lost count under
// their class, at the proxy that observed the event. A reload changes the classes.
func TestMetricsByClass(t *testing.T) {
	t.Parallel()
	r := startReloadRig(t, map[string]string{"admin": "127.0.0.1:0",
		"lock-class": `["billing=billing:*", "reports=lock:report:*"]`})
	other := kit.StartProxy(t, redistest.URLs(r.masters), append(adminArgs, "--upstream", "redis://:one@"+r.upstream.Addr(),
		"--share-upstream-login", "--lock-keys", "lock:*", "--lock-class", "billing=billing:*", "--master-timeout", "5s")...)
	holder, rival := r.operator, kit.Connect(t, other)
	waits, holds, renewals, forced := classMetrics("billing", "forced")
	otherWaits, otherHolds, _, _ := classMetrics("other", "")
	_, _, _, notHeld := classMetrics("billing", "not_held")
	_, reportHolds, _, _ := classMetrics("reports", "")

	// The holder is at one proxy, the waiter at the other one.
	kit.WantGrant(t, holder, "LOCK", "billing:1", "t", "PX", "60000")
	granted := make(chan any)
	go func() { granted <- kit.Do(t, rival, "LOCK", "billing:1", "u", "PX", "60000", "BLOCK", "60000") }()
	wantMetric(t, other, "redlock_lock_waiters", 1)
	kit.Want(t, holder, int64(1), "UNLOCK", "billing:1", "t")
	if reply := <-granted; !kit.IsGranted(reply) {
		t.Fatalf("the waiter got %v", reply)
	}
	wantMetric(t, r.proxy, holds, 1)
	wantMetric(t, r.proxy, waits, 0)
	wantMetric(t, other, waits, 1)
	wantMetric(t, other, holds, 0)

	// A proxy does not know since when a lock of another proxy is held.
	kit.WantGrant(t, holder, "EXTEND", "billing:1", "u", "PX", "60000")
	kit.Want(t, holder, int64(1), "UNLOCK", "billing:1", "u")
	wantMetric(t, r.proxy, holds, 1)

	// The classes also count locks of several keys, locks with several holders, and ordinary
	// commands.
	kit.WantGrant(t, holder, "MLOCK", "3", "billing:2", "billing:6", "job:1", "t", "PX", "60000", "BLOCK", "1000")
	kit.Want(t, holder, int64(3), "MUNLOCK", "3", "billing:2", "billing:6", "job:1", "t")
	wantMetric(t, r.proxy, waits, 2)
	wantMetric(t, r.proxy, otherWaits, 1)
	wantMetric(t, r.proxy, holds, 3)
	wantMetric(t, r.proxy, otherHolds, 1)
	for _, token := range []string{"a", "b"} {
		kit.WantGrant(t, holder, "LOCK", "billing:3", token, "PX", "60000", "SHARED")
	}
	kit.WantGrant(t, holder, "EXTEND", "billing:3", "a", "PX", "70000")
	kit.WantGrant(t, holder, "LOCK", "billing:4", "c", "PX", "60000", "SLOTS", "2")
	kit.WantGrant(t, holder, "EXTEND", "billing:4", "c", "PX", "70000")
	for _, lock := range [][2]string{{"billing:3", "a"}, {"billing:3", "b"}, {"billing:4", "c"}} {
		kit.Want(t, holder, int64(1), "UNLOCK", lock[0], lock[1])
	}
	wantMetric(t, r.proxy, holds, 6)
	const release = `if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	for _, command := range [][]string{{"DEL", "lock:report:1"}, {"EVAL", release, "1", "lock:report:1", "t"}} {
		kit.Want(t, holder, "OK", "SET", "lock:report:1", "t", "NX", "PX", "60000")
		kit.Want(t, holder, int64(1), command...)
	}
	wantMetric(t, r.proxy, reportHolds, 2)

	// Kept locks are renewed and lost.
	kit.WantGrant(t, holder, "LOCK", "billing:5", "t", "PX", "4500", "KEEPALIVE")
	kit.Await(t, "renewals", func() bool { return metricsOf(t, adminAddr(t, r.proxy))[renewals] >= 2 })
	kit.Want(t, rival, int64(1), "FORCEUNLOCK", "billing:5")
	wantMetric(t, r.proxy, notHeld, 1)
	kit.WantGrant(t, holder, "LOCK", "billing:5", "t", "PX", "60000", "KEEPALIVE")
	kit.Want(t, holder, int64(1), "FORCEUNLOCK", "billing:5")
	wantMetric(t, r.proxy, forced, 1)
	wantMetric(t, r.proxy, holds, 6)

	// A reload changes the classes, and keeps the counts of the classes that remain.
	_, jobHolds, _, _ := classMetrics("jobs", "")
	r.set("lock-class", `["jobs=job:*", "billing=billing:*"]`)
	kit.WantGrant(t, holder, "LOCK", "job:1", "t", "PX", "60000")
	kit.Want(t, holder, int64(1), "UNLOCK", "job:1", "t")
	wantMetric(t, r.proxy, jobHolds, 1)
	wantMetric(t, r.proxy, holds, 6)
	if _, exists := metricsOf(t, adminAddr(t, r.proxy))[reportHolds]; exists {
		t.Error("the page still has the class reports")
	}
	r.set("lock-class", "[]")
	wantMetric(t, r.proxy, "redlock_lock_held_seconds_count", 0)
}
