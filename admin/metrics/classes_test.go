package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum"
)

// testClasses returns classes of keys. Each class is given as a name, = and a prefix of its keys.
func testClasses(classes ...string) Classes {
	var names, prefixes []string
	for _, text := range classes {
		name, prefix, _ := strings.Cut(text, "=")
		names, prefixes = append(names, name), append(prefixes, prefix)
	}
	return Classes{Names: names, IndexOf: func(key string) int {
		return slices.IndexFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	}}
}

// recordAll records a wait, a release, a renewal and a loss of a key.
func recordAll(t *testing.T, m *Metrics, key string) {
	t.Helper()
	k := quorum.Key{Name: key}
	_, _ = m.CountLocks(fakeLocker{}).Lock(t.Context(), quorum.LockRequest{Keys: []quorum.Key{k}, Wait: time.Second})
	m.RecordRelease(k, 3*time.Second)
	m.CountRenewal(k)
	m.CountLoss(k, "forced")
	m.CountLoss(k, "a reason that New did not get")
}

// classCounts returns the lines of a page for a class with n events of each kind.
func classCounts(label, reason string, n int) []string {
	return []string{
		fmt.Sprintf("redlock_lock_wait_seconds_count%s %d", label, n),
		fmt.Sprintf("redlock_lock_held_seconds_count%s %d", label, n),
		fmt.Sprintf("redlock_lock_held_seconds_sum%s %d", label, 3*n),
		fmt.Sprintf("redlock_lock_renewals_total%s %d", label, n),
		fmt.Sprintf("redlock_kept_locks_lost_total%s %d", reason, n),
	}
}

// TestClasses checks that each event counts in the class of its key. A class that remains keeps its
// counts, and without classes there is no label.
func TestClasses(t *testing.T) {
	m := New("", "not_held", "forced")
	page := func() string { // a scrape registers its sources, so it needs a Metrics of its own
		scraped := New("", "not_held", "forced")
		scraped.meters.classes.table.Store(m.meters.classes.table.Load())
		return scrape(t, scraped, testSources())
	}
	recordAll(t, m, "billing:1")
	wantLines(t, page(), classCounts("", `{reason="forced"}`, 1)...)
	wantLines(t, page(), `redlock_kept_locks_lost_total{reason="not_held"} 0`)

	m.SetClasses(testClasses("billing=billing:", "stock=stock:", "billing=invoice:"))
	for _, key := range []string{"billing:1", "invoice:1", "billing:2", "job:1"} {
		recordAll(t, m, key)
	}
	got := page()
	for class, n := range map[string]int{"billing": 3, "stock": 0, "other": 1} {
		wantLines(t, got, classCounts(fmt.Sprintf("{class=%q}", class), fmt.Sprintf(`{class=%q,reason="forced"}`, class), n)...)
	}

	m.SetClasses(testClasses("billing=billing:", "jobs=job:"))
	recordAll(t, m, "job:1")
	got = page()
	for class, n := range map[string]int{"billing": 3, "jobs": 1, "other": 1} {
		wantLines(t, got, classCounts(fmt.Sprintf("{class=%q}", class), fmt.Sprintf(`{class=%q,reason="forced"}`, class), n)...)
	}
	if strings.Contains(got, "stock") {
		t.Error("the page still has the class stock")
	}
}

// TestWaitsForSeveralKeys checks that a wait for several keys counts once for each key.
func TestWaitsForSeveralKeys(t *testing.T) {
	m := New("")
	m.SetClasses(testClasses("billing=billing:"))
	_, _ = m.CountLocks(fakeLocker{}).Lock(t.Context(), quorum.LockRequest{
		Keys: []quorum.Key{{Name: "billing:1"}, {Name: "job:1"}, {Name: "billing:2"}}, Wait: time.Second,
	})
	wantLines(t, scrape(t, m, testSources()),
		`redlock_lock_wait_seconds_count{class="billing"} 2`, `redlock_lock_wait_seconds_count{class="other"} 1`)
}
