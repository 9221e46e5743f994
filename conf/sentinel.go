package conf

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// sentinelPort is the default port of a Sentinel.
const sentinelPort = "26379"

// sentinelScheme follows redis or rediss in the scheme of a URL that names Sentinels.
const sentinelScheme = "+sentinel"

// maxSentinels limits how many Sentinels a URL may name, since the proxy asks all of them.
const maxSentinels = 32

var (
	errSentinelURL = errors.New(`is not a URL such as ` +
		`"redis+sentinel://sentinel-1:26379,sentinel-2:26379/mymaster" ` +
		`(in a password, special characters are written as %XX)`)
	errSentinelNoName = errors.New(`names no master; append the name by which the Sentinels know it, ` +
		`such as "/mymaster"`)
	errSentinelBadName = errors.New("names the master with characters that Sentinels do not allow; use letters, " +
		"digits, and .-_")
	errSentinelTwice     = errors.New("names a Sentinel twice")
	errSentinelCount     = errors.New("names more than " + strconv.Itoa(maxSentinels) + " Sentinels")
	errSentinelPath      = errors.New("has more than a database number after the name of the master")
	errSentinelParameter = errors.New("has an unknown parameter; use sentinel_username, sentinel_password or, with " +
		"rediss+sentinel://, skip_verify=true or false")
	errSentinelNoPassword = errors.New("has a sentinel_username without a sentinel_password")
)

// Sentinel describes a Redis whose address Sentinels know.
type Sentinel struct {
	// Master is the name by which the Sentinels know the Redis.
	Master string
	// Addrs holds the addresses of the Sentinels, host:port, with a port in each.
	Addrs []string
	// Username and Password are the login at the Sentinels. Both are empty if there is none.
	Username, Password string

	urlTemplate url.URL // the URL of the Redis, without its address
}

// URLAt returns the URL, redis:// or rediss://, of the Redis at this address. The URL contains the
// password, if there is one.
func (s Sentinel) URLAt(addr string) string {
	at := s.urlTemplate
	at.Host = addr
	return at.String()
}

// ReadSentinel parses a URL that names Sentinels. named reports whether the URL has this form. An
// error quotes no part of the URL.
func ReadSentinel(text string) (s Sentinel, named bool, err error) {
	scheme, rest, found := strings.Cut(text, "://")
	plain, named := strings.CutSuffix(scheme, sentinelScheme)
	switch {
	case !found || !named || plain != "redis" && plain != "rediss":
		return Sentinel{}, false, nil
	case strings.Contains(rest, "#"):
		return Sentinel{}, true, errFragment
	}
	login, hosts, path := splitAuthority(rest)
	u, err := url.Parse(plain + "://" + login + "sentinel" + path)
	if err != nil {
		return Sentinel{}, true, errSentinelURL
	}
	list := addrList{sentinelPort, maxSentinels, errSentinelURL, errSentinelTwice, errSentinelCount}
	if s.Addrs, err = list.parse(hosts); err == nil {
		err = s.parsePath(u)
	}
	if err == nil {
		err = s.parseQuery(u)
	}
	if err != nil {
		return Sentinel{}, true, err
	}
	return s, true, nil
}

// splitAuthority splits the text after the scheme into the login with its @, the hosts, and the
// path with the query.
func splitAuthority(rest string) (login, hosts, path string) {
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	return rest[:at], rest[at:end], rest[end:]
}

// addrList reads a comma-separated list of servers in a URL, with its own errors.
type addrList struct {
	defaultPort                   string
	max                           int
	errForm, errTwice, errTooMany error
}

// parse checks the list, and returns the addresses, each with a port.
func (l addrList) parse(hosts string) ([]string, error) {
	all := strings.Split(hosts, ",")
	if len(all) > l.max {
		return nil, l.errTooMany
	}
	seen := map[string]bool{}
	for i, host := range all {
		u, err := url.Parse("redis://" + host)
		if err != nil || u.Host != host || strings.ContainsAny(host, "@/%") {
			return nil, l.errForm
		}
		switch err := checkHost(u.Hostname()); err {
		case nil:
		case errNotURL:
			return nil, l.errForm
		default:
			return nil, err
		}
		port := cmp.Or(u.Port(), l.defaultPort)
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errBadPort
		}
		canonical := net.JoinHostPort(canonicalHost(u.Hostname()), port)
		if seen[canonical] {
			return nil, l.errTwice
		}
		seen[canonical], all[i] = true, net.JoinHostPort(u.Hostname(), port)
	}
	return all, nil
}

// masterNamePattern matches a name of a master that sentinel.conf allows.
var masterNamePattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// parsePath stores the name of the master, and the database, if there is one.
func (s *Sentinel) parsePath(u *url.URL) error {
	name, db, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case name == "":
		return errSentinelNoName
	case !masterNamePattern.MatchString(name):
		return errSentinelBadName
	}
	if db = strings.TrimSuffix(db, "/"); db != "" {
		if n, err := strconv.ParseUint(db, 10, 31); err != nil || strconv.FormatUint(n, 10) != db {
			return errSentinelPath
		}
		db = "/" + db
	}
	s.Master = name
	s.urlTemplate = url.URL{Scheme: u.Scheme, User: u.User, Path: db}
	return nil
}

// parseQuery stores the login at the Sentinels, and keeps skip_verify in the URL of the Redis.
func (s *Sentinel) parseQuery(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errSentinelParameter
	}
	for name, values := range query {
		switch {
		case len(values) != 1:
			return errSentinelParameter
		case name == "sentinel_username":
			s.Username = values[0]
		case name == "sentinel_password":
			s.Password = values[0]
		case name == "skip_verify" && u.Scheme == "rediss" && (values[0] == "true" || values[0] == "false"):
			s.urlTemplate.RawQuery = "skip_verify=" + values[0]
		default:
			return errSentinelParameter
		}
	}
	if s.Username != "" && s.Password == "" {
		return errSentinelNoPassword
	}
	return nil
}

// HasSentinels reports whether a URL has the form that [ReadSentinel] parses, valid or not.
func HasSentinels(text string) bool {
	_, named, _ := ReadSentinel(text)
	return named
}
