package proxy_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy"
)

func newUpstream(t *testing.T, url string) *proxy.Upstream {
	t.Helper()
	up, err := proxy.NewUpstream(url, patience, slog.New(slog.NewTextHandler(testLog{t}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	return up
}

// What is carried out aside happens once, in order, in its database, behind the URL's
// login; and what went wrong is told.
func TestCarry(t *testing.T) {
	server := startRedis(t, "--requirepass", "secret")
	direct, subscriber := dial(t, server.Addr()), dial(t, server.Addr())
	for _, p := range []*peer{direct, subscriber} {
		p.say("AUTH secret", ok)
	}
	subscriber.say("SUBSCRIBE c", "*3\r\n"+bulk("subscribe")+bulk("c")+":1\r\n")
	up := newUpstream(t, "redis://:secret@"+server.Addr())
	for _, c := range []struct {
		db       int
		commands [][]string
		failure  string
	}{
		{0, [][]string{{"PUBLISH", "c", "m"}}, ""},
		{3, [][]string{{"DEL", "signal"}, {"LPUSH", "signal", "1"}, {"LPUSH", "signal", "2\r\n"}, {"PEXPIRE", "signal", "100000"}, {"GET", "nothing"}}, ""},
		{3, [][]string{{"LPUSH", "signal", "3"}, {"INCR", "signal"}, {"LPUSH", "signal", "4"}}, "WRONGTYPE"},
		{3, [][]string{{"LPUSH", "signal", "5"}, {"LPUSH"}}, "EXECABORT"},
		{99, [][]string{{"PUBLISH", "c", "lost"}}, "DB index is out of range"},
		{0, [][]string{{"PUBLISH", "c", "n"}}, ""},
	} {
		err := up.Carry(t.Context(), c.db, c.commands)
		if c.failure == "" && err != nil || c.failure != "" && (err == nil || !strings.Contains(err.Error(), c.failure) && c.failure != "EXECABORT") {
			t.Errorf("%q in %d: %v", c.commands, c.db, err)
		}
	}
	direct.script([]exchange{{"SELECT 3", ok}, {"LRANGE signal 0 -1", "*4\r\n" + bulk("4") + bulk("3") + bulk("2\r\n") + bulk("1")}})
	message := func(text string) string { return "*3\r\n" + bulk("message") + bulk("c") + bulk(text) }
	subscriber.expect(message("m") + message("n"))
}

// A server that was restarted is spoken to again at once; one that is down, or hangs,
// is an error in a bounded time.
func TestCarryToAnUpstreamThatComesAndGoes(t *testing.T) {
	server := startRedis(t)
	up := newUpstream(t, server.URL())
	push := [][]string{{"LPUSH", "l", "x"}}
	if err := up.Carry(t.Context(), 0, push); err != nil {
		t.Error(err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := up.Carry(t.Context(), 0, push); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := up.Carry(ctx, 0, push); err == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("while it hangs: %v", err)
	}
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := up.Carry(t.Context(), 0, push); err == nil || err.Error() != "upstream "+server.Addr()+": connection refused" {
		t.Errorf("while it is down: %v", err)
	}
	up.Close()
	if err := up.Carry(t.Context(), 0, push); err == nil {
		t.Error("carried after Close")
	}
}
