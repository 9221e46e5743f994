package harness

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/guard/marker"
	guardscript "redlock-proxy/quorum/guard/script"
)

// TestMarkNew: masters that are all new get markers of their present life, each its own; if one of them is not, none does.
func TestMarkNew(t *testing.T) {
	redistest.New(t, redistest.Options{}) // skips without redis-server
	masters, err := redistest.StartMasters(3)
	check(t, err)
	defer func() { check(t, redistest.CloseAll(masters)) }()
	urls := redistest.URLs(masters)
	marked := func() (all []string) {
		for _, m := range masters {
			text, _ := first(dial(t, m.Addr()).Do("GET", guardscript.MarkerKey)).(string)
			all = append(all, text)
		}
		return all
	}
	want(t, dial(t, masters[2].Addr()), "OK", "SET", "k", "v")
	for _, others := range [][]string{urls, {urls[0], "redis://127.0.0.1:1"}, {urls[0], "rediss://" + masters[1].Addr()}} {
		if markNew(others); strings.Join(marked(), "") != "" {
			t.Errorf("%q: got %q, want none", others, marked())
		}
	}
	want(t, dial(t, masters[2].Addr()), int64(1), "DEL", "k")
	markNew(urls)
	for i, text := range marked() {
		m := marker.Marked(text)
		if info := fmt.Sprint(first(dial(t, masters[i].Addr()).Do("INFO", "server"))); !m.Is || !strings.Contains(info, "run_id:"+m.Says.RunID) {
			t.Errorf("got %q, want a marker of the server's present life", text)
		}
	}
	before := fmt.Sprint(marked())
	if markNew(urls); fmt.Sprint(marked()) != before {
		t.Errorf("got %q, want %s to stay", marked(), before)
	}
}
