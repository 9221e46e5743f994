package translate

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/nodes"
)

// target knows three nodes: a and b at 127.0.0.1, b also by its name, and c at ::1.
func target() Target {
	return Target{Host: "proxy", NodeHost: "127.0.0.1", Map: nodes.NewMap([]nodes.Member{
		{Node: nodes.Node{ID: "aa", Host: "127.0.0.1", Port: 7001, Slots: []nodes.Range{{First: 0, Last: 99}}}, ListenPort: 6401},
		{Node: nodes.Node{ID: "bb", Host: "127.0.0.1", Hostname: "node-b", Port: 7002}, ListenPort: 6402},
		{Node: nodes.Node{ID: "cc", Host: "::1", Port: 7003}, ListenPort: 6403},
	})}
}

// lines joins lines of RESP. A line $text stands for a bulk string.
func lines(texts ...string) string {
	var b strings.Builder
	for _, line := range texts {
		if text, isBulk := strings.CutPrefix(line, "$"); isBulk && line != "$-1" {
			b.Write(stringElement(text).appendTo(nil))
			continue
		}
		b.WriteString(line + "\r\n")
	}
	return b.String()
}

// replies lists replies of a node and their translations. An empty translation means that the reply
// has an unknown form.
var replies = []struct {
	name, command, reply, want string
	incomplete                 bool
}{
	{
		"a table of nodes", "CLUSTER NODES",
		lines("$aa 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-99 [7->-bb]\n" +
			"bb 127.0.0.1:7002@17002,node-b,shard-id=12,nodename=x slave aa 0 1 1 connected\n" +
			"cc ::1:7003@17003, master - 0 1 1 connected\n"),
		lines("$aa proxy:6401@6401 myself,master - 0 0 1 connected 0-99 [7->-bb]\n" +
			"bb proxy:6402@6402,proxy,shard-id=12 slave aa 0 1 1 connected\n" +
			"cc proxy:6403@6403, master - 0 1 1 connected\n"),
		false,
	},
	{
		"a table in RESP3 of an old version", "cluster nodes",
		"=50\r\ntxt:aa :7001 myself,master - 0 0 1 connected 0-99\n\r\n",
		"=55\r\ntxt:aa proxy:6401 myself,master - 0 0 1 connected 0-99\n\r\n", false,
	},
	{
		"unknown nodes in a table", "CLUSTER NODES",
		lines("$dd 127.0.0.1:7004@17004 master - 0 0 1 connected\naa 127.0.0.1:7001@1 myself,master - 0 0 1 connected\n" +
			"ee :0@0 master,noaddr - 0 0 1 disconnected\n"),
		lines("$aa proxy:6401@6401 myself,master - 0 0 1 connected\nee :0@0 master,noaddr - 0 0 1 disconnected\n"), true,
	},
	{"no table", "CLUSTER NODES", lines("$what"), "", false},
	{"no text", "CLUSTER NODES", lines(":1"), "", false},
	{
		"replicas", "CLUSTER REPLICAS aa",
		lines("*2", "$bb 127.0.0.1:7002@17002 slave aa 0 1 1 connected", "$dd 127.0.0.1:7009@1 slave aa 0 1 1 connected"),
		lines("*1", "$bb proxy:6402@6402 slave aa 0 1 1 connected"), true,
	},
	{"no replicas", "CLUSTER SLAVES aa", lines("*0"), lines("*0"), false},
	{
		"slots", "CLUSTER SLOTS",
		lines("*2", "*4", ":0", ":99", "*4", "$127.0.0.1", ":7001", "$aa", "*0",
			"*4", "$node-b", ":7002", "$bb", "*2", "$ip", "$127.0.0.1",
			"*3", ":100", ":101", "*4", "$-1", ":7003", "$cc", "*2", "$hostname", "$"),
		lines("*2", "*4", ":0", ":99", "*4", "$proxy", ":6401", "$aa", "*0",
			"*4", "$proxy", ":6402", "$bb", "*2", "$ip", "$proxy",
			"*3", ":100", ":101", "*4", "$proxy", ":6403", "$cc", "*2", "$hostname", "$"), false,
	},
	{
		"slots of RESP3 and of Redis 3", "CLUSTER SLOTS",
		lines("*2", "*3", ":0", ":99", "*4", "_", ":7001", "$aa", "%1", "$ip", "$127.0.0.1",
			"*4", ":100", ":101", "*2", "$::1", ":7003", "*2", "$", ":7001"),
		lines("*2", "*3", ":0", ":99", "*4", "$proxy", ":6401", "$aa", "%1", "$ip", "$proxy",
			"*4", ":100", ":101", "*2", "$proxy", ":6403", "*2", "$proxy", ":6401"), false,
	},
	{
		"slots of unknown nodes", "CLUSTER SLOTS",
		lines("*2", "*4", ":0", ":99", "*3", "$h", ":1", "$dd", "*3", "$127.0.0.1", ":7002", "$bb",
			"*4", ":100", ":101", "*3", "$::1", ":7003", "$cc", "*3", "$h", ":1", "$dd"),
		lines("*1", "*3", ":100", ":101", "*3", "$proxy", ":6403", "$cc"), true,
	},
	{
		"slots of Valkey 9.1", "CLUSTER SLOTS",
		lines("*1", "*3", ":0", ":99", "*4", "$127.0.0.1", ":7001", "$aa", "*4", "$hostname", "$node-a", "$availability-zone", "$az-1"),
		lines("*1", "*3", ":0", ":99", "*4", "$proxy", ":6401", "$aa", "*4", "$hostname", "$proxy", "$availability-zone", "$az-1"), false,
	},
	{"slots with more than is known", "CLUSTER SLOTS", lines("*1", "*3", ":0", ":99", "*4", "$h", ":7001", "$aa", ":1"), "", false},
	{"slots without a port", "CLUSTER SLOTS", lines("*1", "*3", ":0", ":99", "*2", "$h", "$x"), "", false},
	{
		"shards", "CLUSTER SHARDS",
		lines("*2", "*4", "$slots", "*2", ":0", ":99", "$nodes", "*2",
			"*14", "$id", "$aa", "$port", ":7001", "$ip", "$127.0.0.1", "$endpoint", "$?", "$role", "$master",
			"$replication-offset", ":5", "$health", "$online",
			"*8", "$id", "$bb", "$tls-port", ":7002", "$hostname", "$node-b", "$endpoint", "$-1",
			"*4", "$slots", "*0", "$nodes", "*1", "*4", "$id", "$dd", "$port", ":7009"),
		lines("*1", "*4", "$slots", "*2", ":0", ":99", "$nodes", "*2",
			"*14", "$id", "$aa", "$port", ":6401", "$ip", "$proxy", "$endpoint", "$proxy", "$role", "$master",
			"$replication-offset", ":5", "$health", "$online",
			"*8", "$id", "$bb", "$port", ":6402", "$hostname", "$proxy", "$endpoint", "$proxy"), true,
	},
	{
		"shards of RESP3", "CLUSTER SHARDS",
		lines("*1", "%2", "$slots", "*0", "$nodes", "*1",
			"%4", "$id", "$cc", "$port", ":7003", "$tls-port", ":7004", "$endpoint", "$::1"),
		lines("*1", "%2", "$slots", "*0", "$nodes", "*1",
			"%3", "$id", "$cc", "$port", ":6403", "$endpoint", "$proxy"), false,
	},
	{"no shards", "CLUSTER SHARDS", lines("*1", "*1", "$slots"), "", false},
	{
		"INFO of a master", "INFO",
		lines("$# Server\r\ntcp_port:7001\r\nlistener0:name=tcp,bind=127.0.0.1,port=7001\r\n# Replication\r\nrole:master\r\n" +
			"slave0:ip=127.0.0.1,port=7002,state=online,offset=1,lag=0\r\nslave1:ip=10.0.0.9,port=7002,state=online\r\n"),
		lines("$# Server\r\ntcp_port:6401\r\n# Replication\r\nrole:master\r\n" +
			"slave0:ip=proxy,port=6402,state=online,offset=1,lag=0\r\n"), true,
	},
	{
		"INFO of a replica", "info Replication",
		lines("$role:slave\r\nmaster_host:::1\r\nmaster_port:7003\r\nmaster_link_status:up\r\n"),
		lines("$role:slave\r\nmaster_host:proxy\r\nmaster_port:6403\r\nmaster_link_status:up\r\n"), false,
	},
	{
		"INFO of a replica of an unknown node", "info everything",
		lines("$role:slave\r\nmaster_port:7003\r\nmaster_host:10.1.1.1\r\ntcp_port:0\r\nx:1\r\n"),
		lines("$role:slave\r\nx:1\r\n"), true,
	},
	{"INFO of another section", "INFO keyspace", lines("$db0:keys=1"), lines("$db0:keys=1"), false},
	{
		"ROLE of a master", "ROLE",
		lines("*3", "$master", ":5", "*2", "*3", "$127.0.0.1", "$7002", "$5", "*3", "$10.0.0.9", "$7002", "$5"),
		lines("*3", "$master", ":5", "*1", "*3", "$proxy", "$6402", "$5"), true,
	},
	{
		"ROLE of a replica", "role", lines("*5", "$slave", "$127.0.0.1", ":7001", "$connected", ":5"),
		lines("*5", "$slave", "$proxy", ":6401", "$connected", ":5"), false,
	},
	{
		"ROLE of a replica of an unknown node", "role", lines("*5", "$slave", "$127.0.0.1", ":7009", "$connected", ":5"),
		lines("*5", "$slave", "$", ":0", "$connected", ":5"), true,
	},
	{"ROLE of something else", "role", lines("*2", "$sentinel", "*0"), "", false},
	{"an error", "CLUSTER SLOTS", "-ERR no\r\n", "-ERR no\r\n", false},
	{"half a reply", "CLUSTER SLOTS", "*1\r\n", "", false},
	{"two replies", "CLUSTER SLOTS", "*0\r\n*0\r\n", "", false},
	{"links", "CLUSTER LINKS", lines("*1", "*2", "$node", "$aa"), lines("*1", "*2", "$node", "$aa"), false},
	{"another command", "GET x", lines("$127.0.0.1:7001"), lines("$127.0.0.1:7001"), false},
}

func words(command string) [][]byte { return bytes.Fields([]byte(command)) }

func TestTranslateReply(t *testing.T) {
	for _, c := range replies {
		got, result := target().TranslateReply(words(c.command), []byte(c.reply))
		wantResult := Complete
		switch {
		case c.want == "":
			wantResult = Malformed
		case c.incomplete:
			wantResult = Incomplete
		}
		if string(got) != c.want || result != wantResult {
			t.Errorf("%s: %q, result %d; want\n%q, result %d", c.name, got, result, c.want, wantResult)
		}
	}
}

// TestShardsForTLS checks that a client that speaks TLS finds the port under the name tls-port.
func TestShardsForTLS(t *testing.T) {
	to := target()
	to.TLS = true
	reply := lines("*1", "*4", "$slots", "*0", "$nodes", "*1", "*4", "$id", "$aa", "$port", ":7001")
	want := lines("*1", "*4", "$slots", "*0", "$nodes", "*1", "*4", "$id", "$aa", "$tls-port", ":6401")
	if got, _ := to.TranslateReply(words("cluster shards"), []byte(reply)); string(got) != want {
		t.Errorf("%q", got)
	}
}

func TestNamesNodes(t *testing.T) {
	for command, want := range map[string]bool{
		"CLUSTER SLOTS": true, "cluster\x00x nodes": true, "CLUSTER": false, "CLUSTER KEYSLOT a": false, "INFO": true,
		"INFO memory": false, "INFO memory replication": true, "ROLE": true, "GET a": false, "CLUSTER NEW": true,
		"info all\x00x": true,
	} {
		if got := NamesNodes(words(command)); got != want {
			t.Errorf("%q: %t", command, got)
		}
	}
	if !IsUnknown(words("cluster new")) || IsUnknown(words("cluster slots")) || IsUnknown(words("cluster myid")) {
		t.Error("subcommands are not known as they should be")
	}
}

func TestTranslateRedirect(t *testing.T) {
	for _, c := range []struct {
		text, want string
		asExpected bool
	}{
		{"MOVED 5 127.0.0.1:7001", "MOVED 5 proxy:6401", true},
		{"MOVED 5 127.0.0.1:7002", "MOVED 5 proxy:6402", false},
		{"MOVED 5 node-b:7002", "MOVED 5 proxy:6402", false},
		{"MOVED 5 :7001", "MOVED 5 proxy:6401", true},
		{"MOVED 5 ?:7001", "MOVED 5 proxy:6401", true},
		{"ASK 16383 ::1:7003", "ASK 16383 proxy:6403", true},
		{"REDIRECT 127.0.0.1:7001", "REDIRECT proxy:6401", true},
		{"MOVED 5 127.0.0.1:7009", "", false}, {"MOVED 16384 127.0.0.1:7001", "", false}, {"MOVED 127.0.0.1:7001", "", false},
		{"MOVED 5 127.0.0.1", "", false}, {"MOVED", "", false}, {"MOVED 5 x 127.0.0.1:7001", "", false}, {"", "", false},
		{"MOVED 5 127.0.0.1:70010000", "", false}, {"MOVED 5 127.0.0.1:7001 ", "", false},
	} {
		got, asExpected, known := target().TranslateRedirect(c.text)
		if !known {
			got = ""
		}
		if got != c.want || asExpected != c.asExpected {
			t.Errorf("%q: %q, as expected: %t", c.text, got, asExpected)
		}
	}
}

// erasingTarget returns a target that erases addresses. It translates both a node's own address and
// the address that target returns for the node to one constant address.
func erasingTarget() Target {
	var members []nodes.Member
	for id, port := range map[string]int{"aa": 7001, "bb": 7002, "cc": 7003} {
		for _, host := range []string{"127.0.0.1", "node-b", "::1", "proxy"} {
			listed := nodes.Node{ID: id, Host: host, Port: port}
			members = append(members, nodes.Member{Node: listed, ListenPort: 1})
			listed.Port -= 600
			members = append(members, nodes.Member{Node: listed, ListenPort: 1})
		}
	}
	return Target{Host: "x", NodeHost: "127.0.0.1", Map: nodes.NewMap(members)}
}

// FuzzReply checks that a translated reply is a valid reply. If it is complete, it may differ from
// the original reply only in addresses: after erasing, both must be equal.
func FuzzReply(f *testing.F) {
	var commands []string
	for _, c := range replies {
		if !slices.Contains(commands, c.command) {
			commands = append(commands, c.command)
		}
	}
	for _, c := range replies {
		f.Add(slices.Index(commands, c.command), []byte(c.reply))
	}
	f.Fuzz(func(t *testing.T, command int, reply []byte) {
		if command < 0 || command >= len(commands) {
			return
		}
		asked := words(commands[command])
		got, result := target().TranslateReply(asked, reply)
		if result == Malformed {
			return
		}
		if len(got) > 0 && got[0] != '-' && got[0] != '!' && NamesNodes(asked) {
			if _, ok := parse(got); !ok {
				t.Fatalf("%s: %q becomes %q, which is no reply", asked, reply, got)
			}
		}
		if result == Incomplete {
			return
		}
		before, _ := erasingTarget().TranslateReply(asked, reply)
		after, _ := erasingTarget().TranslateReply(asked, got)
		if !bytes.Equal(before, after) {
			t.Fatalf("%s: %q becomes %q: without addresses %q and %q", asked, reply, got, before, after)
		}
	})
}
