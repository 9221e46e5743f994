//go:build integration

package guard

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

var readyInPattern = regexp.MustCompile(`ready in ([0-9hms]+)`)

// TestAnnouncedWait flushes a majority of the masters while a lock of an hour is held.
// Neither an error nor the log of two proxies ever announces a wait of less than an hour.
func TestAnnouncedWait(t *testing.T) {
	f := kit.StartGuardedFleet(t, true, 2)
	var clients []*redistest.Client
	for _, proxy := range f.Proxies {
		clients = append(clients, kit.Connect(t, proxy))
		kit.WantGrant(t, clients[0], "LOCK", proxy.Addr(), "t", "PX", "3600000")
	}
	signal := func(s os.Signal) {
		for _, proxy := range f.Proxies {
			kit.Must(t, proxy.Signal(s))
		}
	}
	// Stop the proxies. Otherwise a proxy might notice the first loss while four masters vote, and
	// copy the data back.
	signal(syscall.SIGSTOP)
	for _, server := range f.Masters[:3] {
		kit.Must(t, kit.SendToMaster(server, "FLUSHALL"))
	}
	signal(syscall.SIGCONT)
	// Until both proxies have logged a wait, no client sends commands. Only the proxies poll the
	// masters, each proxy at its own times.
	for _, proxy := range f.Proxies {
		_, err := proxy.WaitLog("ready in", kit.WaitLimit)
		kit.Must(t, err)
	}
	var texts []string
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		for _, client := range clients {
			reply, _ := client.Do("LOCK", "other", "u", "PX", "1000")
			if failure, isError := reply.(redistest.RespError); isError {
				texts = append(texts, string(failure))
			}
			_, _ = client.Do("UNLOCK", "other", "u")
		}
	}
	for _, proxy := range f.Proxies {
		texts = append(texts, strings.Split(proxy.Log(), "\n")...)
	}
	waits := 0
	for _, text := range texts {
		for _, wait := range readyInPattern.FindAllStringSubmatch(text, -1) {
			waits++
			if d, err := time.ParseDuration(wait[1]); err != nil || d < time.Hour {
				t.Errorf("%s", text)
			}
		}
	}
	if waits == 0 {
		t.Error("no wait is announced")
	}
}
