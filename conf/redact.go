package conf

import (
	"net/netip"
	"regexp"
	"strings"
)

const redactedPassword = "xxxxx"

var (
	schemePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	// safeQueryPattern matches a query that cannot contain a secret.
	safeQueryPattern = regexp.MustCompile(`^(skip_verify|db|database)=[a-z0-9]*$`)
	// safePortPattern matches a port after the colon of an address, if it cannot be a password.
	safePortPattern = regexp.MustCompile(`^[0-9]{0,5}(/[0-9]*)?$`)
	// safeNodesPattern matches two or more nodes of a cluster.
	safeNodesPattern = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}(,[A-Za-z0-9.-]+:[0-9]{1,5})+$`)
	// safeSentinelsPattern matches two or more Sentinels, and the name of a master.
	safeSentinelsPattern = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}(,[A-Za-z0-9.-]+:[0-9]{1,5})+/[A-Za-z0-9._-]+(/[0-9]*)?$`)
)

// Redact returns the URL with xxxxx in place of its password, for errors and logs. It works on the
// text, because the texts in errors are often not valid URLs. If it is unclear which part is the
// password, Redact hides too much rather than too little.
func Redact(url string) string {
	scheme := schemePattern.FindString(url)
	rest := url[len(scheme):]
	at := strings.LastIndexByte(rest, '@')
	question := strings.IndexByte(rest, '?')
	switch {
	// A password with a ? in it, or a parameter with an @ in it.
	case question >= 0 && question < at:
		return scheme + redactedPassword
	case question >= 0:
		return scheme + redactUser(rest[:question], at) + redactQuery(rest[question+1:])
	case strings.HasSuffix(scheme, sentinelScheme+"://") && safeSentinelsPattern.MatchString(rest):
		return url
	case strings.HasSuffix(scheme, clusterScheme+"://") && safeNodesPattern.MatchString(rest):
		return url
	}
	return scheme + redactUser(rest, at)
}

// redactUser hides the password in user:password@host. It also hides a name alone, because some
// clients use it as the password.
func redactUser(text string, at int) string {
	if at < 0 {
		return redactPort(text)
	}
	if colon := strings.IndexByte(text[:at], ':'); colon >= 0 {
		return text[:colon+1] + redactedPassword + text[at:]
	}
	return redactedPassword + text[at:]
}

// redactPort hides a port that is not a number: it may be a password whose @host is missing. After
// a text that can only be a host, not a user, it shows the port.
func redactPort(text string) string {
	host := 0
	if strings.HasPrefix(text, "[") {
		host = strings.IndexByte(text, ']') + 1
	}
	colon := strings.IndexByte(text[host:], ':')
	if colon < 0 || safePortPattern.MatchString(text[host+colon+1:]) || isHost(text[:host+colon]) {
		return text
	}
	return text[:host+colon+1] + redactedPassword
}

// isHost reports whether a text can only be a host: an IP address, or localhost.
func isHost(text string) bool {
	_, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return err == nil || text == "localhost"
}

func redactQuery(query string) string {
	if query == "" || safeQueryPattern.MatchString(query) {
		return "?" + query
	}
	return "?" + redactedPassword
}

// redactIfURL hides the password if the text looks like a URL. It is for texts from places where no
// URL belongs.
func redactIfURL(text string) string {
	if strings.ContainsRune(text, '@') || strings.Contains(text, "://") {
		return Redact(text)
	}
	return text
}
