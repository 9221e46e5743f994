package directwrites

import (
	"slices"
	"strings"

	"redlock-proxy/commands/move"
	"redlock-proxy/internal/clientlist"
)

// maxClients is how many clients are named.
const maxClients = 3

// locking are the commands by which locks are taken, held and released, as CLIENT LIST shows them.
var locking = []string{
	"set", "setnx", "setex", "psetex", "getset", "getdel", "incr", "del", "unlink", "expire", "pexpire", "persist", "eval", "evalsha", "fcall", "exec", "delex", "delifeq",
	"msetex", "hset", "hsetnx", "hincrby", "hdel", "zadd", "zrem", "sadd", "srem", "lpush", "rpush", "lpop", "rpop", "blpop", "brpop", "lmove", "blmove",
}

// suspects are clients in a reply to CLIENT LIST that may have changed a key just now: by the
// command that each carried out last, and when. Those with own addresses are not among them.
// Clients of another proxy cannot be told from others on its machine, so that these are named only
// where there is nobody else.
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
	var elsewhere, beside []string
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
				beside = append(beside, text+" (or of a proxy there)")
			} else {
				elsewhere = append(elsewhere, text)
			}
		}
	}
	if len(elsewhere) == 0 {
		elsewhere = beside
	}
	return elsewhere[:min(maxClients, len(elsewhere))]
}
