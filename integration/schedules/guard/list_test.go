//go:build integration

package guardschedules

import (
	"fmt"
	"regexp"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
)

// TestLogOfProxyDifferences starts a proxy with fewer masters or without the guard. It shares
// masters with a proxy that has all masters and the guard. Each proxy may grant a lock that the
// other proxy has granted, so at least one of them must log the difference.
func TestLogOfProxyDifferences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		masters func(urls []string) []string
		args    []string
		logLine *regexp.Regexp
	}{
		{
			"fewer masters", func(urls []string) []string { return urls[:3] }, nil,
			regexp.MustCompile(`level=(WARN|ERROR).*\bmasters: the masters have \S+, \S+`),
		},
		{
			"guard off", func(urls []string) []string { return urls }, []string{"--guard=false"},
			regexp.MustCompile(`level=(WARN|ERROR).*\bguard\b`),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := startFleet(t, 1, nil)
			different := kit.StartProxy(t, test.masters(kit.LinkURLs(f.links)), test.args...)
			kit.Do(t, kit.Connect(t, different), "LOCK", "k", "token", "PX", "1000")
			kit.Eventually(t, func() error { return checkLogged(test.logLine, f.proxies[0], different) })
		})
	}
}

// checkLogged returns an error unless a line in the log of one of the proxies matches.
func checkLogged(line *regexp.Regexp, proxies ...*harness.Proxy) error {
	for _, proxy := range proxies {
		if line.MatchString(proxy.Log()) {
			return nil
		}
	}
	return fmt.Errorf("no line like %q in the logs", line)
}
