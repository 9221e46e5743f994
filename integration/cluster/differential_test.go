//go:build integration

package cluster

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// pair holds a connection to a node, and a connection to the same node through the proxy.
type pair struct {
	directClient, proxyClient *redistest.Client
}

// translator replaces the ports of nodes by the proxy's ports for them.
type translator struct{ replacer *strings.Replacer }

func newTranslator(t *testing.T, r *rig) translator {
	t.Helper()
	var replacements []string
	for _, node := range r.cluster.Nodes {
		id := fmt.Sprint(kit.Do(t, kit.Dial(t, node.Addr()), "CLUSTER", "MYID"))
		_, port, _ := strings.Cut(node.Addr(), ":")
		replacements = append(replacements, port, r.portOf(t, id))
	}
	return translator{strings.NewReplacer(replacements...)}
}

// Patterns for the parts of replies that change from one reply to the next, such as times and
// offsets.
var (
	nodeTimes  = regexp.MustCompile(`(myself,)?(master|slave)(,fail\??)? (-|[0-9a-f]{40}) \d+ \d+`)
	busPorts   = regexp.MustCompile(`@\d+`)
	offsets    = regexp.MustCompile(`replication-offset"[,:] ?\d+|(offset|lag|_seconds_ago|_bytes|_offset|_active|_size|_histlen)[:=]\d+`)
	listeners  = regexp.MustCompile(`listener\d[^\\]*\\r\\n`)
	infoCounts = regexp.MustCompile(`(uptime_in_\w+|hz|lru_clock|server_time_usec|configured_hz|tcp_port|slave_repl_offset|slave_read_repl_offset):\d+`)
	clientIDs  = regexp.MustCompile(`("id"[,:] ?)\d+`)
	roleOffset = regexp.MustCompile(`"(master|connected)", \d+|"\d+"}}?`)
)

// normalize converts a reply to the text that the test compares. It removes the parts that change
// from one reply to the next, and replaces the ports of nodes by the proxy's ports.
func (n translator) normalize(command string, reply any) string {
	text := fmt.Sprintf("%#v", reply)
	switch {
	case strings.HasPrefix(command, "CLUSTER NODES"), strings.HasPrefix(command, "CLUSTER REPLICAS"):
		text = busPorts.ReplaceAllString(nodeTimes.ReplaceAllString(text, "$2 $4"), "@")
	case strings.HasPrefix(command, "CLUSTER SHARDS"), strings.HasPrefix(command, "INFO"):
		text = listeners.ReplaceAllString(infoCounts.ReplaceAllString(offsets.ReplaceAllString(text, "$1"), "$1"), "")
	case strings.HasPrefix(command, "HELLO"), strings.HasPrefix(command, "EXEC"):
		text = clientIDs.ReplaceAllString(text, "$1")
	case strings.HasPrefix(command, "ROLE"):
		text = roleOffset.ReplaceAllString(text, "")
	}
	return n.replacer.Replace(text)
}

// randomCommand returns a random command, with %s in place of the name of the client in its keys.
func randomCommand(random *rand.Rand, masters []string) string {
	key := func() string { return fmt.Sprintf("{%d}%%s:%d", random.IntN(40), random.IntN(5)) }
	small := func() int { return random.IntN(10) }
	a := key()
	same := a[:strings.IndexByte(a, '}')+1] + fmt.Sprintf("%%s:%d", random.IntN(5))
	all := []func() string{
		func() string { return "GET " + a },
		func() string { return fmt.Sprintf("SET %s %d", a, small()) },
		func() string { return fmt.Sprintf("SET %s %d NX PX 100000", a, small()) },
		func() string { return "DEL " + a + " " + same },
		func() string { return "INCR " + a },
		func() string { return fmt.Sprintf("HSET %s f%d %d", a, small(), small()) },
		func() string { return fmt.Sprintf("RPUSH %s %d", a, small()) },
		func() string { return "LRANGE " + a + " 0 -1" },
		func() string { return "MGET " + a + " " + same },
		func() string { return "MGET " + a + " " + key() },
		func() string { return "MSET " + a + " 1 " + key() + " 2" },
		func() string { return "TYPE " + a },
		func() string { return "GET" },
		func() string { return "NOSUCHCOMMAND " + a },
		func() string { return "MULTI" },
		func() string { return "EXEC" },
		func() string { return "EXEC" },
		func() string { return "DISCARD" },
		func() string { return "WATCH " + a },
		func() string { return "UNWATCH" },
		func() string { return "READONLY" },
		func() string { return "READWRITE" },
		func() string { return "ASKING" },
		func() string { return fmt.Sprintf("HELLO %d", 2+random.IntN(2)) },
		func() string { return "EVAL return|redis.call('incrby',KEYS[1],ARGV[1]) 1 " + a + " 3" },
		func() string { return "EVAL return|redis.call('get',KEYS[1]) 2 " + a + " " + key() },
		func() string { return "EVAL return|redis.call('get','x') 0" },
		func() string {
			return fmt.Sprintf("EVAL return|redis.error_reply('MOVED|%d|%s') 0", random.IntN(100), masters[random.IntN(3)])
		},
		func() string { return "CLUSTER KEYSLOT " + a },
		func() string { return "CLUSTER MYID" },
		func() string { return "CLUSTER COUNTKEYSINSLOT 99999" },
		func() string { return "CLUSTER NOSUCH" },
		func() string { return "CLUSTER NODES" },
		func() string { return "CLUSTER SLOTS" },
		func() string { return "CLUSTER SHARDS" },
		func() string { return "CLUSTER REPLICAS nosuch" },
		func() string { return "INFO replication" },
		func() string { return "INFO server" },
		func() string { return "ROLE" },
		func() string { return "PUBLISH channel x" },
		func() string { return "SPUBLISH " + a + " x" },
		func() string { return "SELECT 1" },
		func() string { return "PING" },
	}
	return all[random.IntN(len(all))]()
}

// TestDifferential sends random commands to nodes, directly and through the proxy, and compares the
// replies. STEPS sets the number of commands, and REDLOCK_TEST_SEED repeats a run.
func TestDifferential(t *testing.T) {
	r := startRig(t)
	steps, _ := strconv.Atoi(cmp.Or(os.Getenv("STEPS"), "5000"))
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("REDLOCK_TEST_SEED"), fmt.Sprint(rand.Uint64())), 10, 64)
	kit.Must(t, err)
	t.Log("seed", seed)
	random, translate := rand.New(rand.NewPCG(seed, 0)), newTranslator(t, r)
	connect := func() (clientPairs []pair) {
		for _, node := range r.cluster.Nodes {
			direct := kit.Dial(t, node.Addr())
			port := r.portOf(t, fmt.Sprint(kit.Do(t, direct, "CLUSTER", "MYID")))
			clientPairs = append(clientPairs, pair{direct, kit.Dial(t, "127.0.0.1:"+port)})
		}
		return clientPairs
	}
	pairs, inMulti := connect(), map[int]bool{}
	for step := range steps {
		at := random.IntN(len(pairs))
		command := randomCommand(random, r.nodeAddrs())
		name, _, _ := strings.Cut(command, " ")
		namesNodes := command == "CLUSTER NODES" || command == "CLUSTER SLOTS" || command == "CLUSTER SHARDS" ||
			strings.HasPrefix(command, "CLUSTER REPLICAS") || command == "CLUSTER NOSUCH" || name == "INFO" || name == "ROLE"
		if inMulti[at] && namesNodes {
			continue // the proxy refuses these commands in MULTI
		}
		send := func(client *redistest.Client, owner string) string {
			words := strings.Fields(strings.ReplaceAll(command, "%s", owner))
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "|", " ")
			}
			return translate.normalize(command, kit.Do(t, client, words...))
		}
		want := strings.ReplaceAll(send(pairs[at].directClient, "d"), "}d:", "}p:")
		got := send(pairs[at].proxyClient, "p")
		if got != want {
			t.Fatalf("step %d, node %d, %s:\n%s, directly\n%s", step, at, command, got, want)
		}
		switch {
		case name == "MULTI":
			inMulti[at] = true
		case name == "EXEC", name == "DISCARD":
			inMulti[at] = false
		}
	}
}
