package harness

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/guard/marker"
	guardscript "redlock-proxy/quorum/guard/script"
)

// TestMarkNew checks that if all masters are new, each gets a marker of its own. If one of them is
// not new, none gets a marker. A master that lost its data is not new.
func TestMarkNew(t *testing.T) {
	redistest.New(t, redistest.Options{}) // skips without redis-server
	servers, err := redistest.StartMasters(3)
	must(t, err)
	defer func() { must(t, redistest.CloseAll(servers)) }()
	urls := redistest.URLs(servers)
	marked := func() (markers []string) {
		for _, m := range servers {
			text, _ := replyOf(dial(t, m.Addr()).Do("GET", guardscript.MarkerKey)).(string)
			markers = append(markers, text)
		}
		return markers
	}
	wantReply(t, dial(t, servers[2].Addr()), "OK", "SET", "k", "v")
	for _, others := range [][]string{urls, {urls[0], "redis://127.0.0.1:1"}, {urls[0], "rediss://" + servers[1].Addr()}} {
		if new(masterRecord).markNew(others, true); strings.Join(marked(), "") != "" {
			t.Errorf("%q: got %q, want none", others, marked())
		}
	}
	wantReply(t, dial(t, servers[2].Addr()), int64(1), "DEL", "k")
	if new(masterRecord).markNew(urls, false); strings.Join(marked(), "") != "" {
		t.Errorf("got %q, want none", marked())
	}
	var record masterRecord
	record.markNew(urls, true)
	for i, text := range marked() {
		m := marker.ReadMarker(text)
		if info := fmt.Sprint(replyOf(dial(t, servers[i].Addr()).Do("INFO", "server"))); !m.Valid ||
			!strings.Contains(info, "run_id:"+m.Value.RunID) {
			t.Errorf("got %q, want a marker of the server's present life", text)
		}
	}
	for _, server := range servers {
		wantReply(t, dial(t, server.Addr()), "OK", "FLUSHALL")
	}
	if record.markNew(urls, true); strings.Join(marked(), "") != "" {
		t.Errorf("after FLUSHALL: got %q, want none", marked())
	}
}
