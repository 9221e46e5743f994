package directwrites

import (
	"slices"
	"strings"

	"redlock-proxy/commands/move"
	"redlock-proxy/internal/clientlist"
)

// maxClients limits how many clients are named.
const maxClients = 3

// locking lists the commands that take, hold or release locks, as CLIENT LIST shows them.
var locking = []string{
	"set", "setnx", "setex", "psetex", "getset", "getdel", "incr", "del", "unlink", "expire", "pexpire", "persist",
	"eval", "evalsha", "fcall", "exec", "delex", "delifeq", "msetex", "hset", "hsetnx", "hincrby", "hdel",
	"zadd", "zrem", "sadd", "srem", "lpush", "rpush", "lpop", "rpop", "blpop", "brpop", "lmove", "blmove",
}

// suspects returns the clients in a reply to CLIENT LIST that may have just changed a key, by the
// name and time of the last command of each. It excludes clients with own addresses. Clients of
// another proxy look like other clients on the machine of that proxy, so suspects returns them only
// if there are no other suspects.
func suspects(list string, own []string) []string {
	all := clientlist.Parse(list)
	ours, proxies := map[string]bool{}, map[string]bool{}
	for _, addr := range own {
		ours[clientlist.Address(addr)] = true
	}
	host := func(c clientlist.Client) string { return c.Addr()[:max(0, strings.LastIndexByte(c.Addr(), ':'))] }
	for _, c := range all {
		if c["name"] == move.WatchName {
			proxies[host(c)] = true
		}
	}
	var others, atProxies []string
	for _, idle := range []string{"0", "1"} { // seconds
		for _, c := range all {
			command, _, _ := strings.Cut(c["cmd"], "|")
			if c["idle"] != idle || ours[c.Addr()] || !slices.Contains(locking, command) {
				continue
			}
			text := c.Addr()
			if name := c["name"]; name != "" {
				text += " name=" + name
			}
			if proxies[host(c)] {
				atProxies = append(atProxies, text+" (or a client of a proxy there)")
			} else {
				others = append(others, text)
			}
		}
	}
	if len(others) == 0 {
		others = atProxies
	}
	return others[:min(maxClients, len(others))]
}
