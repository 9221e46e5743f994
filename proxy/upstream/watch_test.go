package upstream

import (
	"log/slog"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/pushconn"
)

// TestWatch checks that a change of a key in the database is reported.
func TestWatch(t *testing.T) {
	server := redistest.New(t, redistest.Options{})
	u, err := New("redis://"+server.Addr()+"/2", time.Minute, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	var watchable pushconn.Server = u
	conn, err := watchable.Watch(t.Context(), 3)
	if err != nil || watchable.IsDown() {
		t.Fatal(err)
	}
	defer conn.Close()
	in := resp.NewRESP3Reader(conn, resp.Limits{Line: 1 << 10, Bulk: 1 << 10, Elements: 100, Depth: 4, Total: 1 << 16})
	if err := pushconn.Greet(conn, in, time.Minute, resp.Status, "CLIENT", "TRACKING", "ON"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(resp.AppendWords(nil, "PTTL", "k")); err != nil {
		t.Fatal(err)
	}
	if ttl, err := in.ReadValue(); err != nil || ttl != any(int64(-2)) {
		t.Fatalf("%v, %v", ttl, err)
	}
	other, err := redistest.Dial(server.Addr(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, words := range [][]string{{"SELECT", "3"}, {"SET", "k", "v"}} {
		if _, err := other.Do(words...); err != nil {
			t.Fatal(err)
		}
	}
	first, err := in.Next()
	if err != nil || first.Kind != resp.Push {
		t.Errorf("%v, %v", first, err)
	}
}
