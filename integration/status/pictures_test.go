//go:build integration

package status

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/browser"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestPictures writes pictures of the status page into the folder that REDLOCK_PICTURES names. They
// show a busy proxy and failing masters. In docs/pictures, status-phone.png is the picture
// status-phone-dark.
func TestPictures(t *testing.T) {
	redistest.SkipShort(t)
	folder := os.Getenv("REDLOCK_PICTURES")
	if folder == "" {
		t.Skip("REDLOCK_PICTURES names no folder for pictures")
	}
	chromium, s := browser.Start(t), startStatusProxy(t, true)
	stop := startClients(t, s)
	defer stop()
	time.Sleep(25 * time.Second) // the curves need points
	kit.Must(t, s.masters[1].Kill())
	time.Sleep(10 * time.Second) // the curves need points
	kit.Must(t, s.masters[1].Restart())
	time.Sleep(10 * time.Second) // the curves need points
	kit.Must(t, s.masters[3].Kill())
	time.Sleep(5 * time.Second) // the curves need points
	for _, look := range []struct {
		name    string
		display browser.Display
		height  int
	}{
		{"status-light", browser.Display{Width: 1120}, 940},
		{"status-dark", browser.Display{Width: 1120, Dark: true}, 1000},
		{"status-phone", browser.Display{Width: 360, Height: 740}, 1500},
		{"status-phone-dark", browser.Display{Width: 360, Height: 740, Dark: true}, 1500},
	} {
		page := chromium.Open(t, s.url, look.display)
		page.WaitTrue(t, kit.WaitLimit, `document.querySelectorAll("#locks tr").length > 5`)
		time.Sleep(1500 * time.Millisecond) // so that the page has a new state
		page.Screenshot(t, filepath.Join(folder, look.name+".png"), look.height)
	}
}

// startClients starts clients that lock, wait, are refused and use the upstream, until stop is
// called.
func startClients(t *testing.T, s statusProxy) (stop func()) {
	t.Helper()
	holder := kit.Connect(t, s.proxy)
	kit.Want(t, holder, "OK", "CLIENT", "SETNAME", "billing-worker-3")
	for key, ttl := range map[string]string{"invoice:2026-11": "900000", "report:nightly": "3600000",
		"lock:migration": "86400000", "cache:warm": "120000", "tenant:42:import": "240000", "tenant:77:import": "410000"} {
		kit.WantGrant(t, holder, "LOCK", key, "secret-token", "PX", ttl)
	}
	for range 3 {
		waiter := kit.Connect(t, s.proxy)
		go func() { _, _ = waiter.Do("LOCK", "report:nightly", "w", "PX", "1000", "BLOCK", "3600000") }()
	}
	done := make(chan struct{})
	var lockTasks sync.WaitGroup
	for i := range 3 {
		client := kit.Connect(t, s.proxy)
		lockTasks.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				case <-time.After(time.Duration(8+3*i+(n/200)%7) * time.Millisecond):
				}
				for _, command := range [][]string{{"LOCK", "job", "t", "PX", "30000"}, {"SET", "a", "b"}, {"GET", "a"},
					{"UNLOCK", "job", "t"}} {
					if _, err := client.Do(command...); err != nil {
						return
					}
				}
			}
		})
	}
	return func() { close(done); lockTasks.Wait() }
}
