//go:build integration

package operate

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// startPipedProxy starts a proxy with audit-log whose log goes to a pipe, and waits until it is
// ready.
func startPipedProxy(t *testing.T) (proxy *exec.Cmd, addr string, pipe *os.File) {
	t.Helper()
	pipe, writeEnd, err := os.Pipe()
	kit.Must(t, err)
	args := []string{"serve", "--listen", "127.0.0.1:0", "--fresh-start", "--audit-log", "--drain-timeout", "1s"}
	for _, master := range kit.StartMasters(t) {
		args = append(args, "--master", master.URL())
	}
	proxy = kit.ProxyCommand(t, args...)
	proxy.Stderr = writeEnd
	kit.Must(t, proxy.Start())
	t.Cleanup(func() {
		_ = proxy.Process.Kill()
		_ = pipe.Close()
	})
	_ = writeEnd.Close()
	lines := bufio.NewReaderSize(pipe, 16)
	for {
		line, err := lines.ReadString('\n')
		kit.Must(t, err)
		if found := regexp.MustCompile(`msg=ready .*listen=([^ \n]+)`).FindStringSubmatch(line); found != nil {
			return proxy, found[1], pipe
		}
	}
}

// lockAndUnlock takes and releases the given number of locks.
func lockAndUnlock(t *testing.T, addr string, n int) {
	t.Helper()
	client, err := redistest.Dial(addr, kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	for i := range n {
		key := fmt.Sprintf("k%d", i)
		kit.WantGrant(t, client, "LOCK", key, "t", "PX", "60000")
		kit.WantReleased(t, client, key, "t")
	}
}

// wantCleanExit fails the test unless the proxy exits normally after SIGTERM.
func wantCleanExit(t *testing.T, proxy *exec.Cmd) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- proxy.Wait() }()
	kit.Must(t, proxy.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-ended:
		kit.Must(t, err)
	case <-time.After(kit.WaitLimit):
		t.Fatal("the proxy does not end")
	}
}

// TestLogPipeFull checks that locks are still granted if the log's pipe is full because its reader
// has stopped. The proxy still stops on request.
func TestLogPipeFull(t *testing.T) {
	redistest.SkipShort(t)
	proxy, addr, _ := startPipedProxy(t)
	lockAndUnlock(t, addr, 1500) // enough to fill three pipes
	wantCleanExit(t, proxy)
}

// TestLogReaderEnds checks that the proxy continues without its log if the reader of the log ends.
func TestLogReaderEnds(t *testing.T) {
	redistest.SkipShort(t)
	proxy, addr, pipe := startPipedProxy(t)
	kit.Must(t, pipe.Close())
	lockAndUnlock(t, addr, 20)
	wantCleanExit(t, proxy)
}
