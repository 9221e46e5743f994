//go:build integration

package schedules

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// masterTimeout limits the time that the proxies of a changing fleet wait for a reply.
var masterTimeout = "2s"

// compareTime is the time that a proxy needs after its start to compare the data of the masters.
// Until then it may repair differences that a schedule makes.
const compareTime = 5 * time.Second

// changingFleet is a fleet whose masters change. Initially, only the first of its servers are
// masters.
type changingFleet struct {
	*fleet
	routers []*kit.PasswordRouter
	files   []string // configuration files, one for each proxy
}

// startChangingFleet starts empty servers, and proxies with the first servers as masters.
func startChangingFleet(t *testing.T, servers, proxies, masters int) (f *changingFleet, firstProxy, otherProxy *proxy) {
	t.Helper()
	f = &changingFleet{fleet: startFleet(t, servers)}
	for range servers {
		f.routers = append(f.routers, kit.StartPasswordRouter(t))
	}
	for i := range proxies {
		f.files = append(f.files, filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i)))
		p := &proxy{}
		for m, master := range f.masters {
			link := startLink(t, master.Addr())
			f.routers[m].Route(password(i), link.Addr())
			p.links = append(p.links, link)
		}
		f.writeMasters(t, i, f.allMasters()[:masters]...)
		p.Proxy = kit.StartConfigured(t, f.files[i])
		f.proxies = append(f.proxies, p)
	}
	for _, p := range f.proxies {
		p.wantVoting(t)
	}
	time.Sleep(compareTime)
	return f, f.proxies[0], f.proxies[1]
}

// password returns the password that selects the links of a proxy.
func password(proxy int) string { return fmt.Sprintf("of-proxy-%d", proxy) }

// writeMasters writes the masters into the configuration file of a proxy.
func (f *changingFleet) writeMasters(t *testing.T, proxy int, masters ...int) {
	t.Helper()
	var urls []string
	for _, i := range masters {
		urls = append(urls, fmt.Sprintf("%q", f.routers[i].URL(password(proxy))))
	}
	text := fmt.Sprintf("listen: 127.0.0.1:0\nfresh-start: true\nlog-level: debug\nmaster-timeout: %s\nlock-keys: [\"lock:*\"]\nmaster: [%s]\n", masterTimeout, strings.Join(urls, ", "))
	kit.Must(t, kit.ReplaceFile(f.files[proxy], text))
}

// changeMasters writes the masters into the configuration files of all proxies, and lets one proxy
// reload its file. It waits until this proxy sees exactly these masters vote.
func (f *changingFleet) changeMasters(t *testing.T, by *proxy, masters ...int) {
	t.Helper()
	for i := range f.files {
		f.writeMasters(t, i, masters...)
	}
	if reply, failed := kit.Do(t, connect(t, by), "PROXY", "RELOAD").(redistest.RespError); failed {
		t.Fatal("PROXY RELOAD: ", reply)
	}
	f.wantMasters(t, by, masters...)
}

// wantMasters waits until a proxy sees exactly these masters vote.
func (f *changingFleet) wantMasters(t *testing.T, p *proxy, masters ...int) {
	t.Helper()
	client := connect(t, p)
	defer client.Close()
	kit.Eventually(t, func() error {
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		for i, junction := range f.routers {
			if votes := strings.Contains(info, fmt.Sprintf("address=%s,state=voting,",
				junction.Addr())); votes != slices.Contains(masters, i) {
				return fmt.Errorf("master %s votes: %v, want %s to vote:\n%s", letters([]int{i}), votes, letters(masters), info)
			}
		}
		return nil
	})
}
