//go:build integration

package lockkeys

import (
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/randomcommands"
	"redlock-proxy/internal/redistest"
)

const (
	// pipelinesEnv sets the number of pipelines that TestPipelinesAsOneRedis compares.
	pipelinesEnv     = "REDLOCK_PIPELINES"
	defaultPipelines = 400
	// pipelinesPerGroup is the number of pipelines that one to three clients send together before
	// new clients connect.
	pipelinesPerGroup = 8
)

// TestPipelinesAsOneRedis sends random pipelines with commands on lock keys and on other keys.
// Between them, commands such as MULTI, WATCH, HELLO and SUBSCRIBE change the state of the
// connection. Through the proxy, every byte of the replies is the same as from a single Redis. After
// a late reply, new clients use new lock keys.
func TestPipelinesAsOneRedis(t *testing.T) {
	count, seed := int(kit.SizeFrom(t, pipelinesEnv, defaultPipelines)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d pipelines (%s); seed %d (%s)", count, pipelinesEnv, seed, kit.SeedEnv)
	debug := []string{"--enable-debug-command", "yes"}
	// The upstream has the version of the single Redis.
	args := kit.LockKeyArgs(kit.StartReference(t, debug...))
	proxy, single := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), args...), kit.StartReference(t, debug...)
	servers := []string{proxy.Addr(), single.Addr()}
	commands, admins := 0, []*redistest.Client{kit.Dial(t, servers[0]), kit.Dial(t, servers[1])}
	lateCount, keys := 0, lockKeyNames()
	for sent := 0; sent < count && !t.Failed(); sent += pipelinesPerGroup {
		for _, admin := range admins {
			kit.DoInTime(t, admin, "FLUSHALL")
		}
		sentCommands, wasLate := comparePipelines(t, rand.New(rand.NewPCG(seed, uint64(sent))), keys, servers)
		commands += sentCommands
		if wasLate {
			lateCount++
			keys = newNames(keys)
		}
	}
	t.Logf("%d commands, %d late replies", commands, lateCount)
	if lateCount > 1+count/pipelinesPerGroup/2 {
		t.Errorf("%d late replies: too few pipelines are compared", lateCount)
	}
}

// pipelineClient sends the same pipelines to the proxy and to a single Redis.
type pipelineClient struct {
	stream  *randomcommands.Stream
	servers []*peer
}

// comparePipelines compares the pipelines of one to three new clients that take turns. It returns
// the number of commands, and whether it ended early because of a late reply.
func comparePipelines(t *testing.T, random *rand.Rand, keys, servers []string) (commands int, wasLate bool) {
	t.Helper()
	clients := make([]pipelineClient, 1+random.IntN(3))
	unique := 0
	for i := range clients {
		clients[i].stream = randomcommands.NewStream(random, &unique)
		clients[i].stream.HasLockKeys, clients[i].stream.LockKeys = true, keys
		for _, addr := range servers {
			p, err := dialPeer(addr)
			kit.Must(t, err)
			defer p.conn.Close()
			clients[i].servers = append(clients[i].servers, p)
		}
	}
	for i := 0; i < pipelinesPerGroup && !t.Failed(); i++ {
		c, end := clients[random.IntN(len(clients))], fmt.Sprintf("<%d>", i)
		items := c.stream.NextPipeline(1+random.IntN(1<<random.IntN(8)), end)
		var replies []string
		for _, p := range c.servers {
			replies = append(replies, p.sendPipeline(t, items, end))
		}
		commands += len(items)
		if kit.IsLateText(replies[0]) {
			return commands, true
		}
		if got, want := replies[0], replies[1]; got != want {
			t.Errorf("%s\nafter %s", randomcommands.FirstDifference(got, want), describe(items))
		}
	}
	return commands, false
}

// sendPipeline sends items and reads all replies, up to the reply that ends the pipeline. It
// removes the connection's ID from the replies.
func (p *peer) sendPipeline(t *testing.T, items []randomcommands.Item, end string) string {
	t.Helper()
	var request strings.Builder
	for _, item := range items {
		request.WriteString(item.Command)
	}
	kit.Must(t, p.conn.SetDeadline(time.Now().Add(kit.WaitLimit)))
	go func() { _, _ = io.WriteString(p.conn, request.String()) }() // the replies show a failure
	end = fmt.Sprintf("$%d\r\n%s\r\n", len(end), end)
	var replies strings.Builder
	for !strings.HasSuffix(replies.String(), end) {
		line, err := p.reader.ReadString('\n')
		replies.WriteString(line)
		if err != nil {
			t.Fatalf("%v, after %.500q\nafter %s", err, replies.String(), describe(items))
		}
	}
	return connectionID.ReplaceAllString(replies.String(), "$1")
}

// connectionID matches the ID of a connection in the reply to HELLO.
var connectionID = regexp.MustCompile(`(\$2\r\nid\r\n:)\d+`)

// describe returns the commands of a pipeline, one per line.
func describe(items []randomcommands.Item) string {
	var text strings.Builder
	for _, item := range items {
		fmt.Fprintf(&text, "\n\t%.200q", item.Command)
	}
	return text.String()
}
