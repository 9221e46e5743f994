package kit

import (
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
)

// Logged returns the messages of a proxy's log from info level on, each with its level, that are
// behind the last line with a text.
func Logged(proxy *harness.Proxy, behind string) (messages []string) {
	log := proxy.Log()
	for _, found := range loggedLine.FindAllStringSubmatch(log[strings.LastIndex(log, behind)+1:], -1) {
		messages = append(messages, found[1]+" "+strings.Trim(found[2], `"`))
	}
	return messages
}

var loggedLine = regexp.MustCompile(`level=(INFO|WARN|ERROR) msg=("[^"]*"|\S+)`)

// WantLogged wants parts of lines in a proxy's log, which its clients may be ahead of.
func WantLogged(t *testing.T, proxy *harness.Proxy, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if _, err := proxy.WaitLog(part, Patience); err != nil {
			t.Error(err)
		}
	}
}
