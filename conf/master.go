package conf

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const defaultPort = "6379"

var (
	errNotURL = errors.New(`is not a URL such as "redis://host:6379" (in a password, special characters are ` +
		`written as %XX)`)
	errScheme         = errors.New("does not begin with redis://, rediss:// or unix://")
	errUpstreamScheme = errors.New("does not begin with redis://, rediss://, unix://, redis+sentinel://, " +
		"rediss+sentinel://, redis+cluster:// or rediss+cluster://")
	errNoHost       = errors.New("names no host")
	errSeveralHosts = errors.New("names more than one host, but each master has a URL of its own (in " +
		"REDLOCK_MASTER separate them by spaces)")
	errSeveralUpstreams = errors.New("names more than one host, but there is only one upstream (to name its " +
		"Sentinels: redis+sentinel://host,host/name; to name nodes of a cluster: redis+cluster://host,host)")
	errBadPort       = errors.New("has no port between 1 and 65535")
	errPortNotNumber = errors.New("has a port that is not a number (a password comes before an @, the host " +
		"after it)")
	errNoPath    = errors.New(`names no socket; write three slashes, such as "unix:///run/redis.sock"`)
	errDatabase  = errors.New("names a database, which the client's SELECT chooses; leave it out")
	errPath      = errors.New("has a path; leave it out")
	errParameter = errors.New("has a parameter; only skip_verify=true or false is allowed, with rediss:// (the " +
		"proxy chooses the other settings of a connection)")
	errFragment = errors.New("has a # (in a password it is written as %23)")
)

// badPortPattern matches a URL of a plain host with a port that is not a number.
var badPortPattern = regexp.MustCompile(`^rediss?://([\pL\pM\pN._-]+|\[[0-9A-Fa-f:.]+\]):[^@/?#]*[^@/?#0-9][^@/?#]*(/[0-9]*)?$`)

// hostNamePattern matches any text that a resolver might know, without the characters that have a
// meaning in addresses.
var hostNamePattern = regexp.MustCompile(`^[\pL\pM\pN._-]+$`)

// checkMasterURL returns an error if the URL of a master is invalid. It does not pass on the error
// of url.Parse, which quotes parts of the URL. Such a part can be a password with a special
// character.
func checkMasterURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case namesSeveralHosts(text):
		return errSeveralHosts
	case err != nil && badPortPattern.MatchString(text):
		return errPortNotNumber
	case err != nil:
		return errNotURL
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return errScheme
	case strings.Contains(text, "#"):
		return errFragment
	}
	// An upstream's URL may name a database, so the error for a database comes last.
	addressErr := checkAddress(u)
	if addressErr != nil && !errors.Is(addressErr, errDatabase) {
		return addressErr
	}
	return cmp.Or(checkQuery(u), addressErr)
}

// namesSeveralHosts reports whether a text contains several hosts or URLs, separated by commas. In
// a text with a login, the comma may belong to the password.
func namesSeveralHosts(text string) bool {
	return strings.Contains(text, ",") && !strings.Contains(text, "@") && !strings.HasPrefix(text, "unix:")
}

// checkUpstreamURL returns an error if the URL of the upstream is invalid. Unlike the URL of a
// master, it may be empty, and may name a database, Sentinels, or nodes of a cluster.
func checkUpstreamURL(text string) error {
	if text == "" {
		return nil
	}
	if _, named, err := ReadSentinel(text); named {
		return err
	}
	if _, named, err := ReadCluster(text); named {
		return err
	}
	switch err := checkMasterURL(text); {
	case errors.Is(err, errDatabase):
		return nil
	case errors.Is(err, errScheme):
		return errUpstreamScheme
	case errors.Is(err, errSeveralHosts):
		return errSeveralUpstreams
	default:
		return err
	}
}

func checkAddress(u *url.URL) error {
	if u.Scheme == "unix" {
		if u.Host != "" || u.OmitHost || strings.Trim(u.Path, "/ ") == "" {
			return errNoPath
		}
		return nil
	}
	if err := checkHost(u.Hostname()); err != nil {
		return err
	}
	if port, err := strconv.ParseUint(portOrDefault(u), 10, 16); err != nil || port == 0 {
		return errBadPort
	}
	return checkPath(strings.Trim(u.Path, "/"))
}

func checkHost(host string) error {
	_, noIP := netip.ParseAddr(host)
	switch {
	case host == "":
		return errNoHost
	case strings.ContainsAny(host, ",; "):
		return errSeveralHosts
	case noIP != nil && !hostNamePattern.MatchString(host):
		return errNotURL
	}
	return nil
}

func checkPath(path string) error {
	if path == "" {
		return nil
	}
	if _, err := strconv.Atoi(path); err == nil {
		return errDatabase
	}
	return errPath
}

func checkQuery(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errParameter
	}
	namesDatabase := false
	for name, values := range query {
		switch {
		case name == "db" || name == "database":
			namesDatabase = true
		case name != "skip_verify" || u.Scheme != "rediss" || oneOf("true", "false")(strings.Join(values, " ")) != nil:
			return errParameter
		}
	}
	if namesDatabase {
		return errDatabase
	}
	return nil
}

func portOrDefault(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return defaultPort
}

// canonicalAddress returns the address in a valid master URL in a canonical form: two masters with
// the same address are one master. It does not resolve names, so localhost and 127.0.0.1 differ.
func canonicalAddress(master string) string {
	u, err := url.Parse(master)
	if err != nil {
		return master
	}
	if u.Scheme == "unix" {
		return path.Clean(u.Path)
	}
	return net.JoinHostPort(canonicalHost(u.Hostname()), portOrDefault(u))
}

func canonicalHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}
