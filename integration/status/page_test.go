//go:build integration

package status

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/browser"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// showTimeout is the time within which the page must show an event. The page requests the state
// each second. On an idle machine the page shows an event within two seconds.
const showTimeout = kit.WaitLimit

// hostileKey is a key that contains markup.
const hostileKey = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

// rowExpression returns a JavaScript expression for the text of the table row of a server or a key.
func rowExpression(name string) string {
	return fmt.Sprintf("([...document.querySelectorAll('tbody tr')].map((tr) => tr.innerText).find((text) => text.includes(%q)) || '')", name)
}

// TestPage checks that the page shows the current masters, locks and events, shows names from
// clients as text, and requests nothing from other sites.
func TestPage(t *testing.T) {
	t.Parallel()
	chromium, s := browser.Start(t), startStatusProxy(t, true)
	client := kit.Connect(t, s.proxy)
	kit.Want(t, client, "OK", "CLIENT", "SETNAME", "</td><script>document.title='owned'</script>")
	kit.WantGrant(t, client, "LOCK", hostileKey, "t0kEn", "PX", "600000")
	kit.WantGrant(t, client, "LOCK", "other", "t0kEn", "PX", "600000")
	page := chromium.Open(t, s.url, browser.Display{})
	page.WaitTrue(t, kit.WaitLimit, "document.querySelectorAll('#masters tr').length === 5 && document.querySelector('#banner').innerText.includes('5 of 5 masters vote')")
	page.WaitTrue(t, kit.WaitLimit, "document.querySelectorAll('#locks tr').length === 2")
	// The row shows the key as text, with the client's name.
	page.WaitTrue(t, kit.WaitLimit, rowExpression(hostileKey)+".includes('script>document.title')")
	page.WaitTrue(t, kit.WaitLimit, "document.querySelectorAll('.plot path').length >= 8")

	kit.Want(t, client, int64(1), "FORCEUNLOCK", hostileKey)
	page.WaitTrue(t, showTimeout, "document.querySelector('#events').innerText.includes('FORCEUNLOCK') && document.querySelector('#events').innerText.includes('<img src=x')")
	page.WaitTrue(t, kit.WaitLimit, "document.querySelectorAll('#locks tr').length === 1")
	kit.WantGrant(t, client, "LOCK", "third", "t0kEn", "PX", "600000")
	page.WaitTrue(t, kit.WaitLimit, "document.querySelectorAll('#locks tr').length === 2")
	_, err := page.Eval("{const m = document.querySelector('#match'); m.value = 'o?h*'; m.dispatchEvent(new Event('input', {bubbles: true}))}")
	kit.Must(t, err)
	page.WaitTrue(t, kit.WaitLimit, "document.querySelectorAll('#locks tr').length === 1 && "+rowExpression("other")+" !== ''")

	for i, master := range s.masters[:3] {
		kit.Must(t, master.Kill())
		took := page.WaitTrue(t, showTimeout, rowExpression(master.Addr())+".includes('down')")
		page.WaitTrue(t, showTimeout, fmt.Sprintf("document.querySelector('#banner').innerText.includes('%d of 5 masters vote')", 4-i))
		t.Logf("a master's death was seen after %v", took.Round(time.Millisecond))
	}
	page.WaitTrue(t, showTimeout, "document.querySelector('#banner').classList.contains('bad') && document.title.startsWith('⚠')")
	page.WaitTrue(t, showTimeout, "document.querySelector('#events').innerText.includes('no locks')")
	// Without a majority that votes, a master without data does not vote until the longest lease
	// has expired.
	kit.Must(t, s.masters[0].Restart())
	page.WaitTrue(t, kit.WaitLimit, rowExpression(s.masters[0].Addr())+".includes('quarantine') && "+rowExpression(s.masters[0].Addr())+".match(/1[01] min/) !== null")

	if title, err := page.Eval("document.title"); err != nil || !strings.Contains(fmt.Sprint(title), "redlock-proxy 2/5") {
		t.Errorf("the title is %v, %v", title, err)
	}
	if made, err := page.Eval("document.querySelectorAll('main img, main script, body script, iframe').length"); err != nil || made != 0.0 {
		t.Errorf("%v elements were made of text, %v", made, err)
	}
	for _, url := range page.RequestedURLs() {
		if !strings.HasPrefix(url, s.url) {
			t.Errorf("the page asks for %s", url)
		}
	}
	if complaints := page.ConsoleMessages(); len(complaints) > 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
	if text := page.Text(t, "html"); strings.Contains(text, "t0kEn") {
		t.Error("the page shows a token")
	}
	kit.Must(t, s.proxy.Kill())
	page.WaitTrue(t, showTimeout, "document.querySelector('#banner').innerText.includes('does not answer')")
}

// TestClusterNodes checks that the page shows the nodes of a cluster, and notices that one is down.
func TestClusterNodes(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	chromium, cluster := browser.Start(t), kit.StartCluster(t, redistest.InstalledVersion)
	masters := redistest.URLs(kit.StartMasters(t))
	s := statusProxy{proxy: cluster.StartProxy(t, masters, "--lock-keys", "lock:*", "--admin", "127.0.0.1:0")}
	s.setURL(t)
	page := chromium.Open(t, s.url, browser.Display{})
	page.WaitTrue(t, kit.WaitLimit, "document.querySelector('#nodes-count').innerText === '6 of 6 nodes up'")
	nodes := s.view(t, "status/v1")["upstream"].(map[string]any)["nodes"].([]any)
	slots := 0.0
	for _, node := range nodes {
		n := node.(map[string]any)
		slots += n["slots"].(float64)
		// The page shows the port at which the proxy serves the node.
		id := kit.ReplyText(kit.Do(t, kit.Dial(t, fmt.Sprintf("127.0.0.1:%v", n["listen"])), "CLUSTER", "MYID"))
		if want := kit.ReplyText(kit.Do(t, kit.Dial(t, n["name"].(string)), "CLUSTER", "MYID")); id != want {
			t.Errorf("the port of %v belongs to node %s, want %s", n["name"], id, want)
		}
		row := rowExpression(n["name"].(string))
		page.WaitTrue(t, showTimeout, fmt.Sprintf("['%v', '%v', 'up'].every((text) => %s.includes(text))", n["listen"], n["role"], row))
	}
	if len(nodes) != 6 || slots != 16384 {
		t.Errorf("%d nodes, %v slots", len(nodes), slots)
	}
	kit.Must(t, cluster.Nodes[5].Kill())
	page.WaitTrue(t, showTimeout, rowExpression(cluster.Nodes[5].Addr())+".includes('down')")
	page.WaitTrue(t, showTimeout, "document.querySelector('#nodes-count').innerText === '5 of 6 nodes up'")
	if wide, err := page.Eval("document.documentElement.scrollWidth - document.documentElement.clientWidth"); err != nil || wide != 0.0 {
		t.Errorf("%v pixels stand out, %v", wide, err)
	}
}

// TestNoLocks checks that without the setting admin-locks, no path shows a key or a client.
func TestNoLocks(t *testing.T) {
	t.Parallel()
	chromium, s := browser.Start(t), startStatusProxy(t, false)
	client := kit.Connect(t, s.proxy)
	kit.Want(t, client, "OK", "CLIENT", "SETNAME", "cLiEnT")
	kit.WantGrant(t, client, "LOCK", "kEy4Q", "t0kEn", "PX", "600000")
	kit.Want(t, client, int64(1), "FORCEUNLOCK", "kEy4Q")
	page := chromium.Open(t, s.url, browser.Display{})
	page.WaitTrue(t, kit.WaitLimit, "document.querySelector('#events').innerText.includes('FORCEUNLOCK')")
	page.WaitTrue(t, kit.WaitLimit, "document.querySelector('#locks-note').innerText.includes('admin-locks') && getComputedStyle(document.querySelector('#locks-table')).display === 'none'")
	shown := page.Text(t, "html")
	for _, path := range []string{"status/v1", "status/v1/locks", "status/v1/locks?match=*"} {
		_, body := s.get(t, http.MethodGet, path, "")
		shown += body
	}
	for _, secret := range []string{"kEy4Q", "t0kEn", "cLiEnT", client.LocalAddr()} {
		if strings.Contains(shown, secret) {
			t.Errorf("it shows %q:\n%s", secret, shown)
		}
	}
	if answer, _ := s.get(t, http.MethodGet, "status/v1/locks", ""); answer.StatusCode != http.StatusForbidden {
		t.Errorf("got %s", answer.Status)
	}
}

// TestPageLayout checks that the page fits a phone of 360 pixels and follows the browser's colour
// scheme.
func TestPageLayout(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	chromium, s := browser.Start(t), startStatusProxy(t, true)
	client := kit.Connect(t, s.proxy)
	kit.WantGrant(t, client, "LOCK", strings.Repeat("very-long-key:", 15), "t", "PX", "600000")
	kit.Must(t, s.masters[4].Kill())
	colours := map[bool]any{}
	for _, look := range []browser.Display{{Width: 360, Height: 740}, {Width: 360, Height: 740, Dark: true}, {Width: 768}, {}} {
		page := chromium.Open(t, s.url, look)
		page.WaitTrue(t, kit.WaitLimit,
			"document.querySelectorAll('#locks tr').length === 1 && document.querySelectorAll('#masters tr').length === 5")
		wide, err := page.Eval("document.documentElement.scrollWidth - document.documentElement.clientWidth")
		if err != nil || wide != 0.0 {
			t.Errorf("%+v: %v pixels stand out, %v", look, wide, err)
		}
		back, err := page.Eval("getComputedStyle(document.documentElement).backgroundColor")
		kit.Must(t, err)
		if had, there := colours[look.Dark]; there && had != back {
			t.Errorf("%+v: the background is %v and %v", look, had, back)
		}
		colours[look.Dark] = back
	}
	if colours[true] == colours[false] {
		t.Errorf("light and dark have the same background %v", colours[true])
	}
}

// TestCrossOriginRequests checks that the admin port refuses requests that other sites can make a
// browser send.
func TestCrossOriginRequests(t *testing.T) {
	t.Parallel()
	chromium, s := browser.Start(t), startStatusProxy(t, true)
	for _, host := range []string{"evil.example", "evil.example:9380", "127.0.0.1.evil.example"} {
		for _, path := range []string{"", "status/v1", "status/v1/locks", "status/page.js", "metrics", "readyz"} {
			if answer, body := s.get(t, http.MethodGet, path,
				host); answer.StatusCode != http.StatusMisdirectedRequest || strings.Contains(body, s.masters[0].Addr()) {
				t.Errorf("/%s of %s: got %s", path, host, answer.Status)
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		if answer, _ := s.get(t, method, "status/v1", ""); answer.StatusCode != http.StatusMethodNotAllowed ||
			answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: got %s", method, answer.Status)
		}
	}
	// This is the same page from another origin.
	other := chromium.Open(t, strings.Replace(startStatusProxy(t, false).url, "127.0.0.1", "localhost", 1), browser.Display{})
	other.WaitTrue(t, kit.WaitLimit, "document.querySelectorAll('#masters tr').length === 5")
	got, err := other.Eval(fmt.Sprintf("fetch(%q).then(() => 'read', () => 'refused')", s.url+"status/v1"))
	if err != nil || got != "refused" {
		t.Errorf("another origin gets %v, %v", got, err)
	}
}

// TestPollingCost checks that the proxy polls the masters only every few seconds, even with many
// requests for the locks. Each reply lists at most 200 locks.
func TestPollingCost(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	s := startStatusProxy(t, true)
	client := kit.Connect(t, s.proxy)
	for i := range 250 {
		kit.WantGrant(t, client, "LOCK", fmt.Sprintf("k%03d", i), "t", "PX", "600000")
	}
	times := map[float64]bool{}
	for began := time.Now(); time.Since(began) < 7*time.Second; {
		view := s.view(t, "status/v1/locks")
		if locks := view["locks"].([]any); len(locks) != 200 || view["more"] != true {
			t.Fatalf("%d locks are shown, more: %v", len(locks), view["more"])
		}
		times[view["at"].(float64)] = true
	}
	if len(times) > 4 {
		t.Errorf("the masters were asked %d times in 7 s", len(times))
	}
}
