package translate

import (
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// rule translates the reply to a command.
type rule struct {
	// command and subcommand are in lower case. subcommand is empty if the command has none.
	command, subcommand string
	// sections lists the sections of INFO whose fields name nodes; empty for other commands.
	sections []string
	// translate returns the translated reply. ok is false for a reply of an unknown form.
	translate func(t *translation, reply element) (translated element, ok bool)
}

// rules lists all commands whose replies name nodes. It never changes.
var rules = []rule{
	{command: "cluster", subcommand: "nodes", translate: (*translation).translateNodeTable},
	{command: "cluster", subcommand: "replicas", translate: (*translation).translateNodeLines},
	{command: "cluster", subcommand: "slaves", translate: (*translation).translateNodeLines},
	{command: "cluster", subcommand: "slots", translate: (*translation).translateSlots},
	{command: "cluster", subcommand: "shards", translate: (*translation).translateShards},
	{command: "info", sections: []string{"server", "replication"}, translate: (*translation).translateInfo},
	{command: "role", translate: (*translation).translateRole},
}

// addressFreeSubcommands lists the subcommands of CLUSTER whose replies name no address. The proxy
// does not parse their replies. It withholds the reply to any other subcommand without a rule,
// because that reply may name an address.
var addressFreeSubcommands = []string{
	"addslots", "addslotsrange", "bumpepoch", "cancelslotmigrations", "count-failure-reports",
	"countkeysinslot", "delslots", "delslotsrange", "failover", "flushslots", "flushslot", "forget",
	"getkeysinslot", "getslotmigrations", "help", "info", "keyslot", "links", "meet", "migrateslots",
	"migration", "myid", "myshardid", "replicate", "reset", "saveconfig", "set-config-epoch", "setslot",
	"slot-stats",
}

// find returns the rule for a command, or nil if its reply names no node.
func find(words [][]byte) *rule {
	name := syntax.LowerCString(words[0])
	at := slices.IndexFunc(rules, func(r rule) bool {
		return r.command == name && (r.subcommand == "" || len(words) > 1 && r.subcommand == syntax.LowerCString(words[1]))
	})
	if at < 0 || len(rules[at].sections) > 0 && !asksFor(words[1:], rules[at].sections) {
		return nil
	}
	return &rules[at]
}

// asksFor reports whether the words of an INFO ask for one of the sections.
func asksFor(words [][]byte, sections []string) bool {
	return len(words) == 0 || slices.ContainsFunc(words, func(word []byte) bool {
		name := syntax.LowerCString(word)
		return slices.Contains([]string{"default", "all", "everything"}, name) || slices.Contains(sections, name)
	})
}

// NamesNodes reports whether the reply to a command may name nodes, so that it must be translated.
func NamesNodes(words [][]byte) bool { return find(words) != nil || IsUnknown(words) }

// IsUnknown reports whether a command is a subcommand of CLUSTER that is neither in rules nor in
// addressFreeSubcommands. Its reply may name nodes.
func IsUnknown(words [][]byte) bool {
	if len(words) < 2 || syntax.LowerCString(words[0]) != "cluster" || find(words) != nil {
		return false
	}
	return !slices.Contains(addressFreeSubcommands, syntax.LowerCString(words[1]))
}

// Result is the outcome of a translation.
type Result int

// The results. After Incomplete, nodes were left out that the map does not know. After Malformed,
// there is no translation, because the reply has an unknown form.
const (
	Complete Result = iota
	Incomplete
	Malformed
)

// TranslateReply translates the whole reply to a command. It returns errors, and replies that name
// no node, unchanged.
func (t Target) TranslateReply(words [][]byte, reply []byte) (translated []byte, result Result) {
	r := find(words)
	if r == nil || len(reply) == 0 || reply[0] == '-' || reply[0] == '!' {
		return reply, Complete
	}
	e, ok := parse(reply)
	if !ok {
		return nil, Malformed
	}
	tr := translation{Target: t}
	if e, ok = r.translate(&tr, e); !ok {
		return nil, Malformed
	}
	if tr.incomplete {
		result = Incomplete
	}
	return e.appendTo(nil), result
}

// translation is the translation of one reply.
type translation struct {
	Target
	incomplete bool // a node was left out
}

// find returns the proxy's port for a node that the reply names. If the node is unknown, it records
// that.
func (t *translation) find(id, host string, port int) (listenPort int, known bool) {
	listenPort, known = t.portOf(id, host, port)
	t.incomplete = t.incomplete || !known
	return listenPort, known
}

// hostIfSet returns the proxy's host in place of a host or name, and an empty text in place of an
// empty text.
func (t *translation) hostIfSet(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return t.Host
}
