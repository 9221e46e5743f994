package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/proxy"
)

// TestMemoryBetweenCommandsIsBounded checks that max-input-memory counts the memory kept for a
// client between its commands: watched names, and queued commands. A client that exceeds the limit
// gets an error and is disconnected; other clients are served. Afterwards the client's memory is
// released.
func TestMemoryBetweenCommandsIsBounded(t *testing.T) {
	const limit, commandSize, maxCommands = 600_000, 200_000, 20
	large := strings.Repeat("x", commandSize)
	for name, c := range map[string]struct {
		setup, reply string
		keep         func(i int) string
	}{
		"watched": {reply: ok, keep: func(i int) string { return array("WATCH", fmt.Sprint("lock:", i, large)) }},
		"queued":  {array("MULTI"), queued, func(i int) string { return array("SET", fmt.Sprint("lock:", i), large) }},
	} {
		for server, start := range map[string]func() *testProxy{
			"a lock server": func() *testProxy { return lockServer(t) },
			"a relay":       func() *testProxy { r, _ := startWithLockKeys(t); return r },
		} {
			t.Run(name+" at "+server, func(t *testing.T) {
				r := start()
				r.server.Apply(proxy.Settings{MaxInputMemory: limit, MaxClients: 100})
				p := r.connect()
				if c.setup != "" {
					p.send(c.setup)
					p.expect(ok)
				}
				lastReply := ""
				for i := range maxCommands {
					p.send(c.keep(i))
					if lastReply = p.readReply(); lastReply != c.reply {
						break
					}
				}
				if !strings.Contains(lastReply, "raise max-input-memory") {
					t.Errorf("%d commands of %d bytes: %.200q", maxCommands, commandSize, lastReply)
				}
				r.connect().check("PING", "+PONG\r\n")
				_ = p.conn.Close()
				eventually(t, "all to be given back", func() bool { return r.server.Counts().InputBytes == 0 })
			})
		}
	}
}

// TestNamesAndScriptsAreBounded checks that max-input-memory also counts the names of clients, and
// the scripts that clients share.
func TestNamesAndScriptsAreBounded(t *testing.T) {
	const limit, dataSize, maxClients = 600_000, 100_000, 20
	for name, send := range map[string]func(p *peer, i int){
		"names": func(p *peer, _ int) { p.send(array("CLIENT", "SETNAME", strings.Repeat("x", dataSize))) },
		"scripts": func(p *peer, i int) {
			p.send(array("EVAL", fmt.Sprint("return 'OK' --", i, strings.Repeat("x", dataSize)), "1", "lock:k"))
		},
	} {
		r := lockServer(t)
		r.server.Apply(proxy.Settings{MaxInputMemory: limit, MaxClients: 100})
		reply := ""
		for i := 0; i < maxClients && !strings.HasPrefix(reply, "-"); i++ {
			p := r.connect()
			send(p, i)
			if reply = p.readReply(); !strings.HasPrefix(reply, "-") {
				p.send(array("ECHO", strings.Repeat("x", dataSize)))
				reply = p.readReply()
			}
		}
		if !strings.Contains(reply, "raise max-input-memory") {
			t.Errorf("%s: %.200q", name, reply)
		}
	}
}

// TestWaitsAreBounded checks that max-input-memory also counts the memory for a command that waits
// for many keys. The command gets an error; the client stays connected.
func TestWaitsAreBounded(t *testing.T) {
	r := lockServer(t)
	r.server.Apply(proxy.Settings{MaxInputMemory: 600_000, MaxClients: 100})
	words := []string{"BLPOP"}
	for i := range 1000 {
		words = append(words, fmt.Sprint("lock:", i))
	}
	p := r.connect()
	p.send(array(append(words, "0")...))
	if reply := p.readReply(); !strings.Contains(reply, "raise max-input-memory") {
		t.Errorf("BLPOP of 1000 keys: %.200q", reply)
	}
	p.check("PING", "+PONG\r\n")
	eventually(t, "all to be given back", func() bool { return r.server.Counts().InputBytes < 100_000 })
}
