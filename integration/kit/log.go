package kit

import (
	"regexp"
	"strings"

	"redlock-proxy/integration/harness"
)

// Logged returns the messages of a proxy's log from info level on, each with its level, that are behind the last line with a text.
func Logged(proxy *harness.Proxy, behind string) (messages []string) {
	log := proxy.Log()
	for _, found := range loggedLine.FindAllStringSubmatch(log[strings.LastIndex(log, behind)+1:], -1) {
		messages = append(messages, found[1]+" "+strings.Trim(found[2], `"`))
	}
	return messages
}

var loggedLine = regexp.MustCompile(`level=(INFO|WARN|ERROR) msg=("[^"]*"|\S+)`)
