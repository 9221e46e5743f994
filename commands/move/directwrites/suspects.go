package directwrites

import (
	"slices"
	"strings"

	"redlock-proxy/commands/move"
	"redlock-proxy/internal/clientlist"
)

// maxClients limits how many clients a warning names.
const maxClients = 3

// lockingCommands lists the commands that take, hold or release locks, as CLIENT LIST shows them.
var lockingCommands = []string{
	"set", "setnx", "setex", "psetex", "getset", "getdel", "incr", "del", "unlink", "expire", "pexpire", "persist",
	"eval", "evalsha", "fcall", "exec", "delex", "delifeq", "msetex", "hset", "hsetnx", "hincrby", "hdel",
	"zadd", "zrem", "sadd", "srem", "lpush", "rpush", "lpop", "rpop", "blpop", "brpop", "lmove", "blmove",
}

// suspects returns the clients in a reply to CLIENT LIST that may have just changed a key. suspects
// judges each client by the name and time of its last command, and excludes clients whose address
// is in proxyAddrs. A connection of another proxy looks like any client on that proxy's machine.
// suspects therefore returns clients on such a machine only if there are no other suspects.
func suspects(list string, proxyAddrs []string) []string {
	clients := clientlist.Parse(list)
	ownAddrs, proxyHosts := map[string]bool{}, map[string]bool{}
	for _, addr := range proxyAddrs {
		ownAddrs[clientlist.Address(addr)] = true
	}
	host := func(c clientlist.Client) string { return c.Addr()[:max(0, strings.LastIndexByte(c.Addr(), ':'))] }
	for _, c := range clients {
		if c["name"] == move.WatchName {
			proxyHosts[host(c)] = true
		}
	}
	var directClients, proxyClients []string
	for _, idle := range []string{"0", "1"} { // seconds
		for _, c := range clients {
			command, _, _ := strings.Cut(c["cmd"], "|")
			if c["idle"] != idle || ownAddrs[c.Addr()] || !slices.Contains(lockingCommands, command) {
				continue
			}
			if proxyHosts[host(c)] {
				proxyClients = append(proxyClients, c.String()+" (or a client of a proxy there)")
			} else {
				directClients = append(directClients, c.String())
			}
		}
	}
	if len(directClients) == 0 {
		directClients = proxyClients
	}
	return directClients[:min(maxClients, len(directClients))]
}
