package proxy_test

import (
	"testing"

	"redlock-proxy/proxy"
	"redlock-proxy/proxy/redirect"
)

// TestOwnRepliesContainNoRedirects checks that replies to which the proxy adds its own entries
// contain no redirects.
func TestOwnRepliesContainNoRedirects(t *testing.T) {
	redirecting := startFake(t, func(c *fakeConn) {
		for {
			if _, err := readReply(c.in); err != nil {
				return
			}
			c.write("-MOVED 1 other:6379\r\n")
		}
	})
	r := startProxyWith(t, redirecting.url(), proxy.Options{}, []string{"lock:*"})
	for _, line := range []string{
		"INFO", "ROLE", "COMMAND", "COMMAND COUNT", "KEYS *", "SCAN 0", "DBSIZE", "SCRIPT EXISTS x", "SCRIPT KILL",
		"FLUSHALL",
		"CLIENT TRACKING ON", "GET k",
	} {
		if got := r.connect().ask(line); got != redirect.RetryError {
			t.Errorf("%s: %q", line, got)
		}
	}
}
