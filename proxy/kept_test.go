package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/proxy"
)

// TestWhatIsKeptIsBounded: max-input-memory counts what is kept for a client between its commands:
// watched names, and queued commands. A client that exceeds it gets an error and is disconnected;
// other clients are served. When it has left, all its memory is given back.
func TestWhatIsKeptIsBounded(t *testing.T) {
	const limit, each, most = 600_000, 200_000, 20
	large := strings.Repeat("x", each)
	for name, c := range map[string]struct {
		before, reply string
		keep          func(i int) string
	}{
		"watched": {reply: ok, keep: func(i int) string { return array("WATCH", fmt.Sprint("lock:", i, large)) }},
		"queued":  {array("MULTI"), queued, func(i int) string { return array("SET", fmt.Sprint("lock:", i), large) }},
	} {
		for place, start := range map[string]func() *testProxy{
			"a lock server": func() *testProxy { return lockServer(t) },
			"a relay":       func() *testProxy { r, _ := startWithLockKeys(t); return r },
		} {
			t.Run(name+" at "+place, func(t *testing.T) {
				r := start()
				r.server.Apply(proxy.Settings{HeldInput: limit, MaxClients: 100})
				p := r.connect()
				if c.before != "" {
					p.send(c.before)
					p.expect(ok)
				}
				refused := ""
				for i := range most {
					p.send(c.keep(i))
					if refused = p.reply(); refused != c.reply {
						break
					}
				}
				if !strings.Contains(refused, "raise max-input-memory") {
					t.Errorf("%d commands of %d bytes: %.200q", most, each, refused)
				}
				r.connect().say("PING", "+PONG\r\n")
				_ = p.conn.Close()
				eventually(t, "all to be given back", func() bool { return r.server.Counts().HeldInput == 0 })
			})
		}
	}
}

// TestNamesAndScriptsAreBounded: the names of many clients count, too, and so do the scripts that
// clients share.
func TestNamesAndScriptsAreBounded(t *testing.T) {
	const limit, each, most = 600_000, 100_000, 20
	for name, send := range map[string]func(p *peer, i int){
		"names": func(p *peer, _ int) { p.send(array("CLIENT", "SETNAME", strings.Repeat("x", each))) },
		"scripts": func(p *peer, i int) {
			p.send(array("EVAL", fmt.Sprint("return 'OK' --", i, strings.Repeat("x", each)), "1", "lock:k"))
		},
	} {
		r := lockServer(t)
		r.server.Apply(proxy.Settings{HeldInput: limit, MaxClients: 100})
		refused := ""
		for i := 0; i < most && !strings.HasPrefix(refused, "-"); i++ {
			p := r.connect()
			send(p, i)
			if refused = p.reply(); !strings.HasPrefix(refused, "-") {
				p.send(array("ECHO", strings.Repeat("x", each)))
				refused = p.reply()
			}
		}
		if !strings.Contains(refused, "raise max-input-memory") {
			t.Errorf("%s: %.200q", name, refused)
		}
	}
}
