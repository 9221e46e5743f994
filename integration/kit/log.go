package kit

import (
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
)

// MessagesAfter returns the messages in a proxy's log after the last occurrence of the text marker,
// each with its level. It returns only messages of the levels INFO, WARN and ERROR.
func MessagesAfter(proxy *harness.Proxy, marker string) (messages []string) {
	log := proxy.Log()
	for _, found := range logLinePattern.FindAllStringSubmatch(log[strings.LastIndex(log, marker)+1:], -1) {
		messages = append(messages, found[1]+" "+strings.Trim(found[2], `"`))
	}
	return messages
}

var logLinePattern = regexp.MustCompile(`level=(INFO|WARN|ERROR) msg=("[^"]*"|\S+)`)

// WantLogged waits until a proxy's log contains each of these texts, because a reply may come
// before the log message.
func WantLogged(t *testing.T, proxy *harness.Proxy, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if _, err := proxy.WaitLog(part, WaitLimit); err != nil {
			t.Error(err)
		}
	}
}
