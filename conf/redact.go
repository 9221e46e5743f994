package conf

import (
	"net/netip"
	"regexp"
	"strings"
)

const hidden = "xxxxx"

var (
	schemePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	// openQuery is a query that cannot hold a secret.
	openQuery = regexp.MustCompile(`^(skip_verify|db|database)=[a-z0-9]*$`)
	// openPort is what may follow the colon of an address without being somebody's password.
	openPort = regexp.MustCompile(`^[0-9]{0,5}(/[0-9]*)?$`)
	// openSentinels are two Sentinels or more, and the name of a master.
	openSentinels = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}(,[A-Za-z0-9.-]+:[0-9]{1,5})+/[A-Za-z0-9._-]+(/[0-9]*)?$`)
)

// Redact returns the URL with xxxxx for its password, to be shown in errors and logs. It works on
// the text, because what is shown in an error is often no URL at all. Where it is unclear which
// part is the password it hides too much rather than too little.
func Redact(url string) string {
	scheme := schemePattern.FindString(url)
	rest := url[len(scheme):]
	at := strings.LastIndexByte(rest, '@')
	question := strings.IndexByte(rest, '?')
	switch {
	case question >= 0 && question < at: // a password with a ? in it, or a parameter with an @ in it
		return scheme + hidden
	case question >= 0:
		return scheme + redactUser(rest[:question], at) + redactQuery(rest[question+1:])
	case strings.HasSuffix(scheme, sentinelScheme+"://") && openSentinels.MatchString(rest):
		return url
	}
	return scheme + redactUser(rest, at)
}

// redactUser hides the password in user:password@host. A name alone is hidden, too: some clients
// take it for the password.
func redactUser(text string, at int) string {
	if at < 0 {
		return redactPort(text)
	}
	if colon := strings.IndexByte(text[:at], ':'); colon >= 0 {
		return text[:colon+1] + hidden + text[at:]
	}
	return hidden + text[at:]
}

// redactPort hides what should be a port and is none: perhaps a password whose @host is missing.
// Behind what can only be a host, not the name of a user, it is shown.
func redactPort(text string) string {
	host := 0
	if strings.HasPrefix(text, "[") {
		host = strings.IndexByte(text, ']') + 1
	}
	colon := strings.IndexByte(text[host:], ':')
	if colon < 0 || openPort.MatchString(text[host+colon+1:]) || onlyHost(text[:host+colon]) {
		return text
	}
	return text[:host+colon+1] + hidden
}

// onlyHost reports whether a text can be nothing but a host: an IP address, or this machine.
func onlyHost(text string) bool {
	_, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return err == nil || text == "localhost"
}

func redactQuery(query string) string {
	if query == "" || openQuery.MatchString(query) {
		return "?" + query
	}
	return "?" + hidden
}

// guarded returns a text that should hold no URL, with the password hidden if it holds one all the
// same.
func guarded(text string) string {
	if strings.ContainsRune(text, '@') || strings.Contains(text, "://") {
		return Redact(text)
	}
	return text
}
