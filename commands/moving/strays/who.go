package strays

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/commands/moving"
	"redlock-proxy/internal/clientlist"
)

const (
	// maxClients is how many clients are named.
	maxClients = 3
	// maxIdle is for how many seconds a client that has changed a key just now may have been idle.
	maxIdle = 1
)

// locking are the commands by which locks are taken, held and released, as CLIENT LIST shows them.
var locking = []string{
	"set", "setnx", "setex", "psetex", "getset", "getdel", "incr", "del", "unlink", "expire", "pexpire", "persist", "eval", "evalsha", "fcall", "exec", "delex", "delifeq",
	"msetex", "hset", "hsetnx", "hincrby", "hdel", "zadd", "zrem", "sadd", "srem", "lpush", "rpush", "lpop", "rpop", "blpop", "brpop", "lmove", "blmove",
}

// who are clients of the upstream that may have changed a key just now: by the command that each carried out last, and when. This proxy's own are
// not among them. Those of another proxy cannot be told from others on its machine, so that these are named only where there is nobody else.
func (l *link) who() []string {
	replies, err := l.ask([]string{"CLIENT", "LIST"})
	if err != nil {
		return nil
	}
	list, _ := replies[0].(string)
	return suspects(list, l.opts.Own())
}

// suspects are those of a reply to CLIENT LIST, beside the own addresses.
func suspects(list string, own []string) []string {
	type client struct {
		text, host string
		idle       int
	}
	ours, proxies := map[string]bool{}, map[string]bool{}
	for _, addr := range own {
		ours[clientlist.Address(addr)] = true
	}
	var all []client
	for _, fields := range clientlist.Parse(list) {
		addr := fields.Addr()
		host, _, _ := cutLast(addr)
		if fields["name"] == moving.WatchName {
			proxies[host] = true
		}
		command, _, _ := strings.Cut(fields["cmd"], "|")
		idle, err := strconv.Atoi(fields["idle"])
		if err != nil || idle > maxIdle || ours[addr] || !slices.Contains(locking, command) {
			continue
		}
		one := client{text: addr, host: host, idle: idle}
		if name := fields["name"]; name != "" {
			one.text += " name=" + name
		}
		all = append(all, one)
	}
	elsewhere := slices.DeleteFunc(slices.Clone(all), func(c client) bool { return proxies[c.host] })
	note := ""
	if len(elsewhere) == 0 {
		elsewhere, note = all, " (or of a proxy there)"
	}
	slices.SortStableFunc(elsewhere, func(a, b client) int { return cmp.Compare(a.idle, b.idle) })
	var texts []string
	for _, c := range elsewhere[:min(maxClients, len(elsewhere))] {
		texts = append(texts, c.text+note)
	}
	return texts
}

// cutLast cuts a host from its port.
func cutLast(addr string) (host, port string, found bool) {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return addr, "", false
	}
	return addr[:i], addr[i+1:], true
}
