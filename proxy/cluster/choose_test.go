package cluster

import (
	"testing"
	"time"

	"redlock-proxy/proxy/nodes"
)

// TestChooseEntrance checks that the entrance keeps its node while that node answers, and otherwise
// prefers a master.
func TestChooseEntrance(t *testing.T) {
	slots := []nodes.Range{{First: 0, Last: 1}}
	member := func(id, master string, slots []nodes.Range) nodes.Member {
		return nodes.Member{Node: nodes.Node{ID: id, MasterID: master, Slots: slots}}
	}
	gone := member("gone", "", slots)
	gone.GoneSince = time.Unix(1, 0)
	failed := member("failed", "", slots)
	failed.Failed = true
	all := []nodes.Member{gone, failed, member("empty", "", nil), member("replica", "m1", nil), member("m1", "", slots), member("m2", "", slots)}
	for _, c := range []struct {
		currentID   string
		answeredIDs []string
		want        string
	}{
		{"", []string{"m1", "m2", "replica"}, "m1"},
		{"m2", []string{"m1", "m2"}, "m2"},
		{"replica", []string{"m1", "replica"}, "replica"},
		{"m1", []string{"m2", "replica"}, "m2"},
		{"m1", []string{"replica", "empty"}, "empty"},
		{"gone", []string{"gone", "failed"}, "failed"},
		{"m1", nil, ""},
	} {
		answered := map[string]bool{}
		for _, id := range c.answeredIDs {
			answered[id] = true
		}
		if got := chooseEntrance(c.currentID, all, answered).ID; got != c.want {
			t.Errorf("from %q with %v: %q, want %q", c.currentID, c.answeredIDs, got, c.want)
		}
	}
}

// TestWithoutSingleNodeTables checks that a node that was removed and reset does not keep itself
// listed.
func TestWithoutSingleNodeTables(t *testing.T) {
	tables := withoutSingleNodeTables([]nodes.Table{
		{Self: "a", Nodes: []nodes.Node{{ID: "a"}, {ID: "b"}}}, {Self: "c", Nodes: []nodes.Node{{ID: "c"}}},
	})
	if len(tables) != 1 || tables[0].Self != "a" {
		t.Errorf("left are %v", tables)
	}
}

// TestPolls checks that a waiter waits for a poll that begins after the wait.
func TestPolls(t *testing.T) {
	l := polls{changed: make(chan struct{})}
	l.begin()
	next := l.next() // the poll under way does not count
	done := make(chan error, 1)
	go func() { done <- l.wait(t.Context(), next) }()
	l.end()
	select {
	case <-done:
		t.Fatal("the poll in progress counts")
	case <-time.After(10 * time.Millisecond):
	}
	l.begin()
	l.end()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.stop()
	if err := l.wait(t.Context(), next+100); err != nil {
		t.Fatal(err)
	}
}
