package nodes

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// tables holds replies to CLUSTER NODES of different versions.
var tables = []struct{ name, text, want string }{
	{
		"Redis 7",
		"a 127.0.0.1:7001@17001,host-1 myself,master - 0 0 3 connected 0-5460 5462\n" +
			"b 127.0.0.1:7002@17002,host-2,shard-id=69bc slave,fail? a 0 1 3 connected\n" +
			"c 127.0.0.1:7003@17003, master,fail - 5 6 7 disconnected 5461 5463-16383 [93->-a] [77-<-b]\n",
		"self a, epoch 7: a 127.0.0.1:7001 host-1 [{0 5460} {5462 5462}], b 127.0.0.1:7002 host-2 of a [], " +
			"c 127.0.0.1:7003 failed [{5461 5461} {5463 16383}]",
	},
	{
		"Redis 3", "a 10.0.0.1:7001 myself,slave b 0 0 1 connected\nb 10.0.0.2:7002 master - 0 0 2 connected 0-16383\n",
		"self a, epoch 2: a 10.0.0.1:7001 of b [], b 10.0.0.2:7002 [{0 16383}]",
	},
	{
		"IPv6, fields and no own address",
		"a :7001@17001 myself,master - 0 0 1 connected\n" +
			"b ::1:7002@17002,shard-id=1f master - 0 0 2 connected\n\n",
		"self a, epoch 2: b [::1]:7002 [], a seed:7001 []",
	},
	{
		"nodes without an address or a final ID",
		"a 1.2.3.4:7001@17001 myself,master - 0 0 1 connected\n" +
			"b :0@0 master,fail,noaddr - 0 0 2 disconnected\nc 1.2.3.5:1@2 handshake - 0 0 0 disconnected\n",
		"self a, epoch 1: a 1.2.3.4:7001 []",
	},
	{
		"nodes without a port for clients or a host",
		"a 1.2.3.4:7001@17001 myself,master - 0 0 1 connected\nb 1.2.3.5:0@17002 slave a 0 0 1 connected\n" +
			"c :7003@17003 master - 0 0 2 connected\n",
		"self a, epoch 1: a 1.2.3.4:7001 []",
	},
	{"no myself", "a 1.2.3.4:7001@17001 master - 0 0 1 connected\n", "unknown form"},
	{"no port", "a 1.2.3.4 myself,master - 0 0 1 connected\n", "unknown form"},
	{"no slot", "a 1.2.3.4:1 myself,master - 0 0 1 connected 0-16384\n", "unknown form"},
	{"wrong way", "a 1.2.3.4:1 myself,master - 0 0 1 connected 2-1\n", "unknown form"},
	{"no epoch", "a 1.2.3.4:1 myself,master - 0 0 x connected\n", "unknown form"},
	{"few words", "a 1.2.3.4:1 myself\n", "unknown form"},
	{"empty", "", "unknown form"},
	{"long ID", strings.Repeat("a", 65) + " 1.2.3.4:1 myself,master - 0 0 1 connected\n", "unknown form"},
}

func TestParse(t *testing.T) {
	for _, c := range tables {
		table, err := Parse(c.text, "seed")
		if got := describe(table, err); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

func describe(table Table, err error) string {
	if err != nil {
		return "unknown form"
	}
	var all []string
	for _, n := range table.Nodes {
		text := n.ID + " " + n.Addr()
		if n.Hostname != "" {
			text += " " + n.Hostname
		}
		if !n.IsMaster() {
			text += " of " + n.MasterID
		}
		if n.Failed {
			text += " failed"
		}
		all = append(all, fmt.Sprint(text, " ", n.Slots))
	}
	return fmt.Sprintf("self %s, epoch %d: %s", table.Self, table.Epoch, strings.Join(all, ", "))
}

// TestEndpoints checks that nodes are reached by their names if the cluster sends clients to names,
// and that a node keeps the kind of its address while it is listed.
func TestEndpoints(t *testing.T) {
	read := func() Table {
		table, err := Parse("a 1.2.3.4:7000@17000,node-a myself,master - 0 0 1 connected 0-9\n"+
			"b 1.2.3.5:7000@17000 master - 0 0 2 connected 10-19\n", "seed")
		if err != nil || !table.HasHostnames() {
			t.Fatal(table, err)
		}
		return table
	}
	slots := func(host any) []any { return []any{[]any{int64(0), int64(9), []any{host, int64(7000), "a", []any{}}}} }
	for host, want := range map[any]string{"node-a": "node-a:7000", "1.2.3.4": "1.2.3.4:7000", "node-b": "1.2.3.4:7000", nil: "1.2.3.4:7000"} {
		table := read()
		table.FollowEndpoints(slots(host))
		if got := table.Nodes[0].Addr(); got != want || table.Nodes[1].Addr() != "1.2.3.5:7000" {
			t.Errorf("endpoint %v: %s, want %s, and %s", host, got, want, table.Nodes[1].Addr())
		}
	}
	table := read()
	table.FollowEndpoints([]any{"", []any{int64(0), []any{"node-a"}}, nil})
	if table.Nodes[0].ByHostname {
		t.Error("a malformed reply counts")
	}
	table.FollowEndpoints(slots("node-a"))
	ports := NewPorts(6401, 6402)
	added, _ := ports.Update(table.Nodes, time.Unix(1, 0))
	ports.Assign(added[0], 6401)
	ports.Update(read().Nodes, time.Unix(2, 0))
	if got := ports.Members()[0].Addr(); got != "node-a:7000" {
		t.Errorf("the node moved to %s", got)
	}
}

// TestMerge checks that the table with the latest epoch decides about roles and slots, and that all
// tables together list the nodes.
func TestMerge(t *testing.T) {
	old := Table{Self: "a", Epoch: 1, Nodes: []Node{
		{ID: "a", Host: "h", Port: 1, Slots: []Range{{0, 16383}}}, {ID: "c", Host: "h", Port: 3, Slots: []Range{{0, 1}}},
	}}
	late := Table{Self: "b", Epoch: 2, Nodes: []Node{
		{ID: "a", Host: "h", Port: 1, MasterID: "b", Failed: true}, {ID: "b", Host: "h", Port: 2, Slots: []Range{{0, 16382}}},
	}}
	want := Table{Epoch: 2, Nodes: []Node{late.Nodes[0], late.Nodes[1], {ID: "c", Host: "h", Port: 3}}}
	for _, order := range [][]Table{{old, late}, {late, old}} {
		if got := Merge(order); !reflect.DeepEqual(got, want) {
			t.Errorf("merged: %v, want %v", got, want)
		}
	}
	if got := Merge([]Table{old, late}).UnservedSlots(); got != 1 {
		t.Errorf("%d slots are uncovered, want 1", got)
	}
	late.Nodes[1].Failed = true
	if got := late.UnservedSlots(); got != SlotCount {
		t.Errorf("%d slots are uncovered after a failure", got)
	}
}

// TestPorts checks that nodes keep their ports while they are listed, and a minute longer.
func TestPorts(t *testing.T) {
	start := time.Unix(1000, 0)
	node := func(id string, port int) Node { return Node{ID: id, Host: "h", Port: port} }
	ports := NewPorts(6401, 6403)
	place := func(wantAdded int, at time.Duration, listedNodes ...Node) (removed []Member) {
		t.Helper()
		added, removed := ports.Update(listedNodes, start.Add(at))
		if len(added) != wantAdded {
			t.Fatalf("added %v, want %d", added, wantAdded)
		}
		for _, n := range added {
			port, ok := ports.Next()
			if ok && port == 6402 { // the proxy cannot listen on this port
				ports.MarkUnusable(port)
				port, ok = ports.Next()
			}
			if ok {
				ports.Assign(n, port)
			}
		}
		return removed
	}
	expect := func(want string) {
		t.Helper()
		var all []string
		for _, m := range ports.Members() {
			text := fmt.Sprint(m.ID, "@", m.ListenPort, "=", m.Addr())
			if m.IsGone() {
				text += " gone"
			}
			all = append(all, text)
		}
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("members: %s, want %s", got, want)
		}
	}
	place(2, 0, node("a", 1), node("b", 2))
	expect("a@6401=h:1, b@6403=h:2")
	place(1, time.Second, node("b", 3), node("c", 4)) // b moves, a is gone, no port is left for c
	expect("a@6401=h:1 gone, b@6403=h:3")
	place(1, 2*time.Second, node("a", 1), node("b", 3), node("c", 4)) // a is back
	expect("a@6401=h:1, b@6403=h:3")
	place(1, 3*time.Second, node("b", 3), node("c", 4))
	if removed := place(1, 3*time.Second+GoneTime-1, node("b", 3), node("c", 4)); len(removed) != 0 {
		t.Errorf("removed %v", removed)
	}
	if removed := place(1, 3*time.Second+GoneTime, node("b", 3), node("c", 4)); len(removed) != 1 || removed[0].ID != "a" {
		t.Errorf("removed %v", removed)
	}
	expect("c@6401=h:4, b@6403=h:3")
	ports.ClearUnusable()
	if port, ok := ports.Next(); !ok || port != 6402 {
		t.Errorf("next is %d, %t", port, ok)
	}
}

// TestMap checks that a map finds a node's port by ID, by each of its hosts, and by slot.
func TestMap(t *testing.T) {
	m := NewMap([]Member{
		{Node: Node{ID: "a", Host: "10.0.0.1", Hostname: "Node-1", Port: 7001, Slots: []Range{{5, 9}}}, ListenPort: 6401},
		{Node: Node{ID: "b", Host: "::1", Port: 7002}, ListenPort: 6402},
		{Node: Node{ID: "c", Host: "10.0.0.1", Port: 7001, Slots: []Range{{5, 6}}}, ListenPort: 6403, GoneSince: time.Unix(1, 0)},
		{Node: Node{ID: "d", Host: "10.0.0.1", Port: 7009}, ListenPort: 6404, GoneSince: time.Unix(1, 0)},
	})
	for _, c := range []struct {
		host string
		port int
		want int
	}{
		{"10.0.0.1", 7001, 6401}, {"node-1.", 7001, 6401}, {"::ffff:10.0.0.1", 7001, 6401}, {"[0:0::1]", 7002, 6402},
		{"10.0.0.1", 7009, 6404}, {"10.0.0.1", 7002, 0}, {"10.0.0.2", 7001, 0}, {"", 7001, 0},
	} {
		if got, known := m.PortAt(c.host, c.port); got != c.want || known != (c.want > 0) {
			t.Errorf("%s, %d: %d, %t; want %d", c.host, c.port, got, known, c.want)
		}
	}
	for id, want := range map[string]int{"a": 6401, "b": 6402, "c": 6403, "d": 6404, "e": 0} {
		if got, known := m.PortOf(id); got != want || known != (want > 0) {
			t.Errorf("%s: %d, %t", id, got, known)
		}
	}
	if m.PortOfSlot(4) != 0 || m.PortOfSlot(5) != 6401 || m.PortOfSlot(9) != 6401 || m.PortOfSlot(10) != 0 {
		t.Error("the owners of slots are wrong")
	}
	if _, known := new(Map).PortOf("a"); known {
		t.Error("an empty map knows a node")
	}
}

// TestSlotOf compares slots with the replies of a Redis to CLUSTER KEYSLOT.
func TestSlotOf(t *testing.T) {
	for key, want := range map[string]int{
		"": 0, "a": 15495, "123456789": 12739, "lock:{a}": 15495, "{a}lock:{b}": 15495, "{}a": 10875, "lock:1": 3430, "foo{bar": 15278,
	} {
		if got := SlotOf(key); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}

// TestListsKey checks that each key is listed at exactly one node.
func TestListsKey(t *testing.T) {
	m := NewMap([]Member{
		{Node: Node{ID: "a", Host: "h", Port: 1, MasterID: "b"}, ListenPort: 6401},
		{Node: Node{ID: "b", Host: "h", Port: 2, Slots: []Range{{0, 8000}}}, ListenPort: 6402},
		{Node: Node{ID: "c", Host: "h", Port: 3, Slots: []Range{{8001, 16000}}}, ListenPort: 6403},
	})
	for i := range 1000 {
		key, listed := fmt.Sprint("lock:", i), ""
		for _, id := range []string{"a", "b", "c", "d"} {
			if m.ListsKey(id, key) {
				listed += id
			}
		}
		want := "c"
		if slot := SlotOf(key); slot <= 8000 || slot > 16000 { // no node serves the other slots
			want = "b"
		}
		if listed != want {
			t.Fatalf("%s is listed at %q, want %q", key, listed, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range tables {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := Parse(text, "h")
		if err != nil {
			return
		}
		for _, n := range table.Nodes {
			if n.ID == "" || n.Port == 0 || n.Host == "" && n.Hostname == "" {
				t.Errorf("%q: node %v", text, n)
			}
		}
		_ = table.UnservedSlots()
	})
}
