//go:build integration

package masters

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// rig holds servers, and proxies with a configuration file each. Some of the servers are the
// proxies' masters.
type rig struct {
	t        *testing.T
	servers  []*redistest.Server
	links    []*faultlink.Link // links of all proxies to the servers
	files    []string
	usesTags bool // the keys of a tag share a cell
	proxies  []*harness.Proxy
}

// startRig starts servers, and proxies with the first servers as masters.
func startRig(t *testing.T, proxies, masters, servers int) *rig {
	t.Helper()
	return startServers(t, &rig{t: t}, proxies, masters, servers)
}

func startServers(t *testing.T, r *rig, proxies, masters, servers int) *rig {
	t.Helper()
	for len(r.servers) < servers {
		r.servers = append(r.servers, kit.StartRedis(t))
	}
	r.links = kit.StartLinks(t, r.servers)
	for i := range proxies {
		r.files = append(r.files, filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i)))
		r.writeMasters(i, firstN(masters)...)
		r.proxies = append(r.proxies, kit.StartConfigured(t, r.files[i]))
	}
	r.wantVoting(firstN(masters)...)
	return r
}

// url returns the URL of a server for the proxies.
func (r *rig) url(i int) string { return "redis://" + r.links[i].Addr() }

// firstN returns the numbers from 0 to n-1.
func firstN(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// writeMasters writes the masters into the configuration file of a proxy.
func (r *rig) writeMasters(proxy int, masters ...int) {
	r.t.Helper()
	var urls []string
	for _, i := range masters {
		urls = append(urls, r.url(i))
	}
	text := fmt.Sprintf("listen: 127.0.0.1:0\nfresh-start: true\nlog-level: debug\nmaster-timeout: 5s\nlock-keys: [\"k*\"]\nmaster: [%q]\n", strings.Join(urls, `", "`))
	text = strings.ReplaceAll(text, `\"`, `"`)
	if r.usesTags {
		text += "lock-tags: [\"*\"]\n"
	}
	kit.Must(r.t, kit.ReplaceFile(r.files[proxy], text))
}

// writeAllMasters writes the masters into the files of all proxies.
func (r *rig) writeAllMasters(masters ...int) {
	r.t.Helper()
	for i := range r.files {
		r.writeMasters(i, masters...)
	}
}

// reload sends PROXY RELOAD to a proxy, and fails the test unless it succeeds. It repeats the
// command while the masters have not decided on the change, as on a busy machine.
func (r *rig) reload(proxy int) {
	r.t.Helper()
	client := kit.Connect(r.t, r.proxies[proxy])
	kit.Eventually(r.t, func() error {
		failure, failed := kit.Do(r.t, client, "PROXY", "RELOAD").(redistest.RespError)
		switch {
		case !failed:
			return nil
		case strings.Contains(string(failure), "not decided on the change yet"),
			strings.Contains(string(failure), "the masters are being changed"):
			return failure
		}
		r.t.Fatal("PROXY RELOAD: ", failure)
		return nil
	})
}

// change lets the first proxy change the masters, and the other proxies follow.
func (r *rig) change(masters ...int) {
	r.t.Helper()
	r.writeAllMasters(masters...)
	r.reload(0)
	r.wantVoting(masters...)
}

// wantVoting waits until each proxy has exactly the given masters, and all of them vote.
func (r *rig) wantVoting(masters ...int) {
	r.t.Helper()
	for _, proxy := range r.proxies {
		kit.Eventually(r.t, func() error { return r.checkVoting(proxy, masters) })
	}
}

// checkVoting returns an error unless a proxy has exactly the given masters, and all of them vote.
func (r *rig) checkVoting(proxy *harness.Proxy, masters []int) error {
	info, err := proxyInfo(proxy)
	if err != nil {
		return err
	}
	if err := r.checkMasters(info, masters); err != nil {
		return err
	}
	return checkContains(info, fmt.Sprintf("redlock_masters_voting:%d\r\n", len(masters)))
}

// checkMasters returns an error unless a reply to PROXY INFO names exactly the given masters.
func (r *rig) checkMasters(info string, masters []int) error {
	texts := []string{fmt.Sprintf("redlock_masters:%d\r\n", len(masters))}
	for _, i := range masters {
		texts = append(texts, "address="+r.links[i].Addr()+",")
	}
	return checkContains(info, texts...)
}

// proxyInfo returns the reply of a proxy to PROXY INFO.
func proxyInfo(proxy *harness.Proxy) (string, error) {
	client, err := redistest.Dial(proxy.Addr(), 20*time.Second)
	if err != nil {
		return "", err
	}
	defer client.Close()
	reply, err := client.Do("PROXY", "INFO")
	return kit.ReplyText(reply), err
}

func checkContains(text string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("want %q in %s", part, text)
		}
	}
	return nil
}

// stopSignal and continueSignal stop and continue a process.
const (
	stopSignal     = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)
