package kit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

// GrantLimit limits the time in which a free lock must be granted to a waiter. Any other cause of a
// grant takes much longer.
const GrantLimit = 20 * time.Second

// StartWaiter returns a client that has sent a LOCK of the key k with this token to the proxy, and
// waits for the lock.
func StartWaiter(t *testing.T, proxy *harness.Proxy, token string) *redistest.Client {
	t.Helper()
	client := Connect(t, proxy)
	Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", "k", token, "PX", "60000", "BLOCK", "60000")))
	return client
}

// ConnectWithoutReading returns a client that does not read its replies from the proxy. So a drain
// of the proxy does not end before the client is closed.
func ConnectWithoutReading(t *testing.T, proxy *harness.Proxy) *redistest.Client {
	t.Helper()
	client := Connect(t, proxy)
	// The proxy itself replies to PROXY INFO, even with an upstream.
	Must(t, client.WriteUntilBlocked(redistest.AppendCommand(nil, "PROXY", "INFO")))
	return client
}

// WantBlocked waits until the given number of clients of the proxy wait for a lock.
func WantBlocked(t *testing.T, proxy *harness.Proxy, clients int) {
	t.Helper()
	asking := Connect(t, proxy)
	defer func() { Must(t, asking.Close()) }()
	line := fmt.Sprintf("proxy_blocked_clients:%d\r\n", clients)
	Eventually(t, func() error {
		info, _ := Do(t, asking, "PROXY", "INFO").(string)
		if !strings.Contains(info, line) {
			return fmt.Errorf("got %q, want %q in it", info, line)
		}
		return nil
	})
}

// TryLockAgain repeats a LOCK of the key k until it is granted, at most for two seconds. In this
// time, a master that has lost its data votes again. TryLockAgain reports whether the lock was
// granted.
func TryLockAgain(t *testing.T, client *redistest.Client) bool {
	t.Helper()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, granted := Do(t, client, "LOCK", "k", "u", "PX", "60000").(int64); granted {
			return true
		}
	}
	return false
}
