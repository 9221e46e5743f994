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

// sentinelPort is where a Sentinel listens that names no port.
const sentinelPort = "26379"

// sentinelScheme is behind redis and rediss in the scheme of a URL that names Sentinels.
const sentinelScheme = "+sentinel"

// maxSentinels bounds how many Sentinels a URL names: all of them are asked.
const maxSentinels = 32

var (
	errSentinelURL       = errors.New(`is not a URL such as "redis+sentinel://sentinel-1:26379,sentinel-2:26379/mymaster" (in a password, special characters are written as %XX)`)
	errSentinelNoName    = errors.New(`names no master: write its name, by which the Sentinels know it, behind them, such as "/mymaster"`)
	errSentinelName      = errors.New("names the master by other characters than the letters, digits, and .-_ that Sentinels allow")
	errSentinelTwice     = errors.New("names a Sentinel twice")
	errSentinelCount     = errors.New("names more than " + strconv.Itoa(maxSentinels) + " Sentinels")
	errSentinelPath      = errors.New("has more behind the name of the master than the number of a database")
	errSentinelParameter = errors.New("has a parameter other than sentinel_username, sentinel_password and, of rediss+sentinel://, skip_verify=true or false")
	errSentinelUser      = errors.New("has a sentinel_username without a sentinel_password")
)

// Sentinel is a Redis of which Sentinels say where it is.
type Sentinel struct {
	// Master is the name by which the Sentinels know it.
	Master string
	// Addrs are those of the Sentinels, host:port, as they are dialled.
	Addrs []string
	// Username and Password are the login at the Sentinels, or empty.
	Username, Password string

	server url.URL // of the Redis, without its address
}

// At is the URL, redis or rediss, of the Redis when it is at this address. It has the password, if
// there is one.
func (s Sentinel) At(addr string) string {
	at := s.server
	at.Host = addr
	return at.String()
}

// ReadSentinel takes a URL apart that names Sentinels, which is said by named. The error, if it is
// a wrong one, has no part of it.
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
	if s.Addrs, err = sentinelAddrs(hosts); err == nil {
		err = s.takePath(u)
	}
	if err == nil {
		err = s.takeQuery(u)
	}
	if err != nil {
		return Sentinel{}, true, err
	}
	return s, true, nil
}

// splitAuthority splits what follows the scheme into the login with its @, the hosts, and what
// comes then.
func splitAuthority(rest string) (login, hosts, path string) {
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	return rest[:at], rest[at:end], rest[end:]
}

// sentinelAddrs checks the Sentinels that stand between commas.
func sentinelAddrs(hosts string) ([]string, error) {
	all := strings.Split(hosts, ",")
	if len(all) > maxSentinels {
		return nil, errSentinelCount
	}
	seen := map[string]bool{}
	for i, host := range all {
		u, err := url.Parse("redis://" + host)
		if err != nil || u.Host != host || strings.ContainsAny(host, "@/%") {
			return nil, errSentinelURL
		}
		switch err := checkHost(u.Hostname()); err {
		case nil:
		case errNotURL:
			return nil, errSentinelURL
		default:
			return nil, err
		}
		port := cmp.Or(u.Port(), sentinelPort)
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errBadPort
		}
		same := net.JoinHostPort(canonicalHost(u.Hostname()), port)
		if seen[same] {
			return nil, errSentinelTwice
		}
		seen[same], all[i] = true, net.JoinHostPort(u.Hostname(), port)
	}
	return all, nil
}

// masterName is what sentinel.conf takes for one.
var masterName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// takePath takes the name of the master, and the database, if there is one.
func (s *Sentinel) takePath(u *url.URL) error {
	name, db, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case name == "":
		return errSentinelNoName
	case !masterName.MatchString(name):
		return errSentinelName
	}
	if db = strings.TrimSuffix(db, "/"); db != "" {
		if n, err := strconv.ParseUint(db, 10, 31); err != nil || strconv.FormatUint(n, 10) != db {
			return errSentinelPath
		}
		db = "/" + db
	}
	s.Master = name
	s.server = url.URL{Scheme: u.Scheme, User: u.User, Path: db}
	return nil
}

// takeQuery takes the login at the Sentinels, and leaves to the Redis what is its own.
func (s *Sentinel) takeQuery(u *url.URL) error {
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
			s.server.RawQuery = "skip_verify=" + values[0]
		default:
			return errSentinelParameter
		}
	}
	if s.Username != "" && s.Password == "" {
		return errSentinelUser
	}
	return nil
}

// HasSentinels reports whether a URL is of the form that [ReadSentinel] reads, right or wrong.
func HasSentinels(text string) bool {
	_, named, _ := ReadSentinel(text)
	return named
}
