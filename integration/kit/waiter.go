package kit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

// AtOnce is how long a waiter may take to be granted a lock that is free; all other things that
// could free it take far longer.
const AtOnce = time.Second

// Waiter is a client of the proxy that has sent a LOCK of the key k with this token, and waits for
// its turn.
func Waiter(t *testing.T, proxy *harness.Proxy, token string) *redistest.Client {
	t.Helper()
	client := Connect(t, proxy)
	Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", "k", token, "PX", "60000", "BLOCK", "60000")))
	return client
}

// Busy is a client of the proxy that has asked for more than it reads, so that it keeps the proxy
// from ending its drain until it closes.
func Busy(t *testing.T, proxy *harness.Proxy) *redistest.Client {
	t.Helper()
	client := Connect(t, proxy)
	Must(t, client.Fill(redistest.AppendCommand(nil, "PROXY", "INFO"))) // which the proxy answers itself, also before an upstream
	return client
}

// WantBlocked waits until so many clients of the proxy wait for a lock.
func WantBlocked(t *testing.T, proxy *harness.Proxy, clients int) {
	t.Helper()
	asking := Connect(t, proxy)
	defer func() { Must(t, asking.Close()) }()
	line := fmt.Sprintf("proxy_blocked_clients:%d\r\n", clients)
	Soon(t, func() error {
		info, _ := Do(t, asking, "PROXY", "INFO").(string)
		if !strings.Contains(info, line) {
			return fmt.Errorf("got %q, want %q in it", info, line)
		}
		return nil
	})
}

// Steal tries to get the key k for two seconds, in which a master that forgot votes again. It
// reports whether that was granted.
func Steal(t *testing.T, client *redistest.Client) bool {
	t.Helper()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, granted := Do(t, client, "LOCK", "k", "u", "PX", "60000").(int64); granted {
			return true
		}
	}
	return false
}
