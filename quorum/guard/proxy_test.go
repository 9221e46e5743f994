package guard

import (
	"strings"
	"testing"
	"time"
)

// TestProxyAnnouncements checks that announcements can be parsed, and that proxyDifferences finds
// their differences.
func TestProxyAnnouncements(t *testing.T) {
	p := Proxy{ID: "x", LastAnnounced: time.Second, FirstAnnounced: time.Millisecond, Masters: 5, GuardOn: true, Servers: "abc",
		ClockFitStart: time.Microsecond, ClockFitEnd: time.Hour, Settings: "s", LongestTTL: time.Minute, Name: "h:1", Addresses: "a"}
	for _, p.MoveEra = range []int{7, 0} {
		if got, ok := parseProxy("x", "1000 1 "+p.Announcement()); !ok || got != p {
			t.Errorf("got %+v, %v", got, ok)
		}
	}
	for _, text := range []string{"", "1 2 3", "a 1 5 1 l 0 0"} {
		if _, ok := parseProxy("x", text); ok {
			t.Errorf("%q was read", text)
		}
	}
	other := p
	other.ID = "y"
	if found := proxyDifferences([]Proxy{p, other}); len(found) != 0 {
		t.Errorf("alike: %q", found)
	}
	for _, change := range []func(){func() { other.Masters = 3 }, func() { other.GuardOn = false },
		func() { other.Servers = "def" }, func() { other.Settings = "t" }} {
		other = p
		change()
		for _, pair := range [][]Proxy{{p, other}, {other, p}} {
			if found := proxyDifferences(pair); len(found) != 1 {
				t.Errorf("%+v differ by one thing, got %q", pair, found)
			}
		}
	}
	other.Servers, other.GuardOn, other.Masters, other.Settings = unknownServers, true, 5, "s"
	if found := proxyDifferences([]Proxy{p, other}); len(found) != 0 {
		t.Errorf("not all are met: %q", found)
	}
}

// TestProtocols checks that the ID shows the proxy's protocol, and that a difference is reported
// once.
func TestProtocols(t *testing.T) {
	for id, want := range map[string]int{"": 0, "A": 0, "A-1": 1, newID(2): 2, newID(13): 13, "A.x-1": 1} {
		if got := (Proxy{ID: id}).Protocol(); got != want {
			t.Errorf("%q: %d, want %d", id, got, want)
		}
	}
	proxies := []Proxy{{ID: "A-1"}, {ID: newID(2)}, {ID: "B-1"}}
	want := "proxies of two versions are running (protocols 1 and 2 on the masters): " +
		"locks cannot be moved and masters cannot be changed; upgrade the older proxies"
	if found := proxyDifferences(proxies); len(found) != 1 || found[0] != want {
		t.Errorf("%q", found)
	}
}

// TestObstacles checks which other proxies prevent a change of the masters or a move of the locks.
func TestObstacles(t *testing.T) {
	p := Proxy{ID: newID(proxyProtocol), GuardOn: true, Servers: "abc", Settings: "s", Addresses: "a"}
	for _, c := range []struct {
		name   string
		change func(other *Proxy)
		want   string
	}{
		{"alike", func(*Proxy) {}, ""},
		{"an earlier version", func(other *Proxy) { other.ID = newID(proxyProtocol - 1) }, "has an earlier version"},
		{"no guard", func(other *Proxy) { other.GuardOn = false }, "runs without the guard"},
		{"other settings", func(other *Proxy) { other.Settings = "t" }, "has different lock settings"},
		{"grants no locks", func(other *Proxy) { other.Settings = "" }, ""},
		{"other addresses of the same servers", func(other *Proxy) { other.Addresses = "b" }, "by other addresses"},
		{"a version that does not tell its addresses", func(other *Proxy) { other.Addresses = "" }, ""},
		{"other servers", func(other *Proxy) { other.Servers, other.Addresses = "def", "b" }, ""},
		{"has not met all servers", func(other *Proxy) { other.Servers, other.Addresses = unknownServers, "b" }, ""},
	} {
		other := p
		c.change(&other)
		if got := p.DescribeObstacle(other); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
