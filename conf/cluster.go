package conf

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// clusterScheme follows redis or rediss in the scheme of a URL that names nodes of a cluster.
const clusterScheme = "+cluster"

// maxSeeds limits how many nodes a URL may name.
const maxSeeds = 32

var (
	errClusterURL = errors.New(`is not a URL such as "redis+cluster://node-1:7000,node-2:7000" ` +
		`(in a password, special characters are written as %XX)`)
	errClusterPath      = errors.New("names a database, but a cluster has only one; leave it out")
	errClusterParameter = errors.New("has an unknown parameter; use skip_verify=true or false, with rediss+cluster://")
	errClusterTwice     = errors.New("names a node twice")
	errClusterCount     = errors.New("names more than " + strconv.Itoa(maxSeeds) + " nodes; name fewer, because the proxy needs only one reachable node")
)

// Cluster describes a Redis Cluster, some of whose nodes are known.
type Cluster struct {
	// Seeds holds the addresses of nodes, host:port, with a port in each.
	Seeds []string

	urlTemplate url.URL // the URL of a node, without its address
}

// URLAt returns the URL of the node at an address, redis:// or rediss://. It contains the password,
// if there is one.
func (c Cluster) URLAt(addr string) string {
	at := c.urlTemplate
	at.Host = addr
	return at.String()
}

// ReadCluster parses a URL that names nodes of a cluster. named reports whether the URL has this
// form. An error quotes no part of the URL.
func ReadCluster(text string) (c Cluster, named bool, err error) {
	scheme, rest, found := strings.Cut(text, "://")
	plain, named := strings.CutSuffix(scheme, clusterScheme)
	switch {
	case !found || !named || plain != "redis" && plain != "rediss":
		return Cluster{}, false, nil
	case strings.Contains(rest, "#"):
		return Cluster{}, true, errFragment
	}
	login, hosts, path := splitAuthority(rest)
	u, err := url.Parse(plain + "://" + login + "node" + path)
	if err != nil {
		return Cluster{}, true, errClusterURL
	}
	if strings.Trim(u.Path, "/") != "" {
		return Cluster{}, true, errClusterPath
	}
	list := addrList{defaultPort, maxSeeds, errClusterURL, errClusterTwice, errClusterCount}
	if c.Seeds, err = list.parse(hosts); err != nil {
		return Cluster{}, true, err
	}
	if u.RawQuery != "" {
		if plain != "rediss" || u.RawQuery != "skip_verify=true" && u.RawQuery != "skip_verify=false" {
			return Cluster{}, true, errClusterParameter
		}
	}
	c.urlTemplate = url.URL{Scheme: u.Scheme, User: u.User, RawQuery: u.RawQuery}
	return c, true, nil
}

// HasCluster reports whether the upstream is a cluster: whether its URL has the form that
// [ReadCluster] parses, valid or not.
func (c Config) HasCluster() bool {
	_, named, _ := ReadCluster(c.Upstream)
	return named
}

// clusterProblems returns settings that conflict with a cluster as upstream.
func (c Config) clusterProblems() []problem {
	if !c.HasCluster() || !c.MoveFromUpstream {
		return nil
	}
	return []problem{{setting: "move-from-upstream", text: "is not possible with a cluster as upstream yet: the " +
		"locks of all its nodes would have to move in one step; leave it out, and wait until the locks that " +
		"clients hold on the cluster have expired before you set lock-keys"}}
}

// ClusterPortRange returns the first and the last of ClusterPorts.
func (c Config) ClusterPortRange() (first, last int) {
	first, last, _ = parsePorts(c.ClusterPorts) // valid, as set has checked
	return first, last
}

var errPorts = errors.New(`is not a range of ports such as "6401-6499"`)

// parsePorts parses a range of ports.
func parsePorts(text string) (first, last int, err error) {
	from, to, found := strings.Cut(text, "-")
	if !found {
		to = from
	}
	low, err1 := strconv.ParseUint(from, 10, 16)
	high, err2 := strconv.ParseUint(to, 10, 16)
	if err1 != nil || err2 != nil || low == 0 || low > high {
		return 0, 0, errPorts
	}
	return int(low), int(high), nil
}

func checkPorts(text string) error {
	_, _, err := parsePorts(text)
	return err
}

// checkAnnouncedHost returns an error if a text is neither an IP address nor a name.
func checkAnnouncedHost(text string) error {
	if checkHost(text) != nil {
		return errors.New(`is neither an IP address nor a name, such as "proxy-1.example.com" (without a port)`)
	}
	return nil
}
