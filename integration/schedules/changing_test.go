//go:build integration

package schedules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// masterTimeout is for how long these proxies wait for an answer.
var masterTimeout = "2s"

// compares is how long after its start a proxy has compared what the masters hold: until then it
// may mend what a schedule leaves there.
const compares = 5 * time.Second

// changing is a fleet whose masters are changed: the first of its servers are the masters.
type changing struct {
	*fleet
	junctions []*kit.Junction
	files     []string // of the proxies
}

// startChanging starts so many servers, all of which are empty, and so many proxies on the first
// ones.
func startChanging(t *testing.T, servers, proxies, masters int) (f *changing, first, other *proxy) {
	t.Helper()
	f = &changing{fleet: startFleet(t, servers)}
	for range servers {
		f.junctions = append(f.junctions, kit.StartJunction(t))
	}
	for i := range proxies {
		f.files = append(f.files, filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i)))
		p := &proxy{}
		for m, master := range f.masters {
			link := startLink(t, master.Addr())
			f.junctions[m].Lead(password(i), link.Addr())
			p.links = append(p.links, link)
		}
		f.name(t, i, f.everyMaster()[:masters]...)
		p.Proxy = kit.StartConfigured(t, f.files[i])
		f.proxies = append(f.proxies, p)
	}
	for _, p := range f.proxies {
		p.wantVoting(t)
	}
	time.Sleep(compares) // see compares
	return f, f.proxies[0], f.proxies[1]
}

// password is that of a proxy.
func password(proxy int) string { return fmt.Sprintf("of-proxy-%d", proxy) }

// name has the file of a proxy name these masters.
func (f *changing) name(t *testing.T, proxy int, masters ...int) {
	t.Helper()
	var urls []string
	for _, i := range masters {
		urls = append(urls, fmt.Sprintf("%q", f.junctions[i].URL(password(proxy))))
	}
	text := fmt.Sprintf("listen: 127.0.0.1:0\nfresh-start: true\nlog-level: debug\nmaster-timeout: %s\nlock-keys: [\"lock:*\"]\nmaster: [%s]\n", masterTimeout, strings.Join(urls, ", "))
	kit.Must(t, os.WriteFile(f.files[proxy]+".new", []byte(text), 0o600))
	kit.Must(t, os.Rename(f.files[proxy]+".new", f.files[proxy]))
}

// change has all proxies name other masters, and one change them. It returns when those vote as
// that one sees it.
func (f *changing) change(t *testing.T, by *proxy, masters ...int) {
	t.Helper()
	for i := range f.files {
		f.name(t, i, masters...)
	}
	if reply, failed := kit.Do(t, connect(t, by), "PROXY", "RELOAD").(redistest.RespError); failed {
		t.Fatal("PROXY RELOAD: ", reply)
	}
	f.wantMasters(t, by, masters...)
}

// wantMasters wants a proxy to have these masters, soon, and all of them to vote.
func (f *changing) wantMasters(t *testing.T, p *proxy, masters ...int) {
	t.Helper()
	client := connect(t, p)
	defer client.Close()
	kit.Soon(t, func() error {
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		for i, one := range f.junctions {
			if votes := strings.Contains(info, fmt.Sprintf("address=%s,state=voting,", one.Addr())); votes != slices.Contains(masters, i) {
				return fmt.Errorf("master %s votes: %v, want %s to vote:\n%s", names([]int{i}), votes, names(masters), info)
			}
		}
		return nil
	})
}
