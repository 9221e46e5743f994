//go:build integration

package relay

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// conversation is a conversation of clients with the server, one step per line:
//
//	A GET k      client A sends the command and reads its reply
//	A> GET k     client A sends the command
//	A <          client A reads one more reply or push
type conversation struct {
	name     string
	lines    string
	wantPart string // part of the expected replies
}

func conversations() []conversation {
	return []conversation{
		{"WATCH and no change", "A WATCH k\nA MULTI\nA SET k 1\nA GET k\nA EXEC", `A: []interface {}{"OK", "1"}`},
		{"WATCH and a change", "A WATCH k\nB SET k 2\nA MULTI\nA SET k 1\nA EXEC\nA GET k", `A: <nil>` + "\n" + `A: "2"`},
		{"UNWATCH", "A WATCH k\nB SET k 2\nA UNWATCH\nA MULTI\nA GET k\nA EXEC", `A: []interface {}{"2"}`},
		{"DISCARD", "A MULTI\nA SET k 1\nA DISCARD\nA GET k\nA DISCARD", "DISCARD without MULTI"},
		{"a command fails in EXEC", "A SET k text\nA MULTI\nA INCR k\nA SET other 1\nA EXEC\nA GET other",
			"not an integer"},
		{"blocking pops", "A> BLPOP a b 0\nB RPUSH b 1\nA <\nA> BLMOVE b c LEFT RIGHT 0\nB RPUSH b 2\nA <\nA BZPOPMIN z 0.05\nA> XREAD BLOCK 0 STREAMS s 0\nB XADD s 1-1 f v\nA <",
			`A: []interface {}{"b", "1"}`},
		{"first come, first served", "A> BLPOP q 0\nA> PING\nB RPUSH q 1\nA <\nA <", `A: "PONG"`},
		{"subscribed in RESP2", "A SUBSCRIBE news\nA GET k\nA PING\nB PUBLISH news 1\nA <\nA UNSUBSCRIBE\nA GET k",
			"Can't execute 'get'"},
		{"subscribed in RESP3",
			"A HELLO 3\nA SUBSCRIBE news\nB PUBLISH news 1\nA <\nA GET k\nA> PUBLISH news 2\nA <\nA <\nA UNSUBSCRIBE",
			`A: redistest.Push{"message", "news", "2"}`},
		{"patterns and channels", "A PSUBSCRIBE n*\nA SUBSCRIBE news\nB PUBLISH news 1\nA <\nA <\nA RESET\nA GET k",
			`"pmessage"`},
		{"shard channels", "A SSUBSCRIBE s\nB SPUBLISH s 1\nA <\nA SUNSUBSCRIBE s\nA GET k", `"smessage"`},
		{"a cache", "A HELLO 3\nA CLIENT TRACKING ON\nA SET k 1\nA GET k\nB SET k 2\nA <\nB SET k 3\nA GET k\nA CLIENT TRACKINGINFO", `A: redistest.Push{"invalidate", []interface {}{"k"}}`},
		{"a cache of some keys",
			"A HELLO 3\nA CLIENT TRACKING ON OPTIN\nA CLIENT CACHING YES\nA GET k\nA GET other\nB MSET k 1 other 1\nA <\nA PING", `A: "PONG"`},
		{"a cache by prefix",
			"A HELLO 3\nA CLIENT TRACKING ON BCAST PREFIX user: NOLOOP\nA SET user:1 x\nB SET user:2 x\nA <\nB FLUSHALL\nA <\nA PING", `"user:2"`},
		{"a cache is flushed", "A HELLO 3\nA CLIENT TRACKING ON\nA GET k\nB FLUSHALL\nA <\nA PING",
			`A: redistest.Push{"invalidate", interface {}(nil)}`},
		{"databases", "A SELECT 2\nA SET k 2\nB GET k\nA MOVE k 0\nB GET k\nA SWAPDB 0 2\nA GET k\nA SELECT 99",
			"out of range"},
		{"silence", "A> CLIENT REPLY OFF\nA> SET k 1\nA> CLIENT REPLY ON\nA <\nA> CLIENT REPLY SKIP\nA> SET k 2\nA GET k", `A: "2"`},
		{"names", "A CLIENT SETNAME worker\nA CLIENT GETNAME\nA HELLO 3 SETNAME other\nA CLIENT GETNAME\nA RESET\nA CLIENT GETNAME", `A: "other"`},
		{"no such protocol", "A HELLO 4\nA HELLO x\nA HELLO 2 NOSUCH\nA PING", "NOPROTO"},
	}
}

// TestRelayConversations compares the replies of the server and of the proxy in each conversation.
func TestRelayConversations(t *testing.T) {
	r := startRelay(t)
	for _, c := range conversations() {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.lines, "SSUBSCRIBE") {
				redistest.RequireFeature(t, "SSUBSCRIBE", "7.0")
			}
			r.wantSame(t, func(addr string) string {
				kit.Want(t, r.dialUpstream(t), "OK", "FLUSHALL")
				transcript := runConversation(t, c, addr)
				if !strings.Contains(transcript, c.wantPart) {
					t.Errorf("%s: expected %s in:\n%s", addr, c.wantPart, transcript)
				}
				return transcript
			})
		})
	}
}

// runConversation runs a conversation and returns the replies, one per line.
func runConversation(t *testing.T, c conversation, addr string) string {
	t.Helper()
	clients := map[string]*redistest.Client{}
	var transcript strings.Builder
	for line := range strings.SplitSeq(c.lines, "\n") {
		words := strings.Fields(line)
		name, sendOnly := strings.CutSuffix(words[0], ">")
		if clients[name] == nil {
			client, err := redistest.Dial(addr, kit.WaitLimit)
			kit.Must(t, err)
			defer client.Close()
			clients[name] = client
		}
		if words[1] != "<" {
			kit.Must(t, clients[name].Send(redistest.AppendCommand(nil, words[1:]...)))
		}
		if !sendOnly {
			reply, err := clients[name].Receive()
			if err != nil {
				t.Fatalf("%s: %s: %v, after\n%s", addr, line, err, &transcript)
			}
			fmt.Fprintf(&transcript, "%s: %#v\n", name, withoutID(reply))
		}
	}
	return transcript.String()
}

// withoutID removes the connection ID, which varies, from a reply to HELLO.
func withoutID(reply any) any {
	if fields, ok := reply.(map[string]any); ok {
		delete(fields, "id")
	}
	return reply
}
