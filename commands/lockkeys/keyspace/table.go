package keyspace

import "redlock-proxy/commands/catalog/spec"

// tableEntry holds the implementation of a command, and its documentation for COMMAND DOCS without
// an upstream.
type tableEntry struct {
	name           string
	run            func(c call) Reply
	since, summary string
}

// find returns the command with a name in lower case, or nil.
func find(name string) *command { return byName[name] }

// byName maps the names to the commands. The map is read-only.
var byName = indexByName(map[string][]tableEntry{
	"string": stringCommands(), "generic": genericCommands(), "hash": hashCommands(), "list": listCommands(),
	"set": setCommands(), "sorted-set": sortedSetCommands(),
})

func indexByName(groups map[string][]tableEntry) map[string]*command {
	byName := map[string]*command{}
	for group, entries := range groups {
		for _, e := range entries {
			byName[e.name] = &command{tableEntry: e, group: group, spec: spec.Find([]byte(e.name))}
		}
	}
	return byName
}

// fastCommands holds the commands in Redis' category @fast, by name. They process only a few
// elements of their keys. The map is read-only.
var fastCommands = func() map[string]bool {
	fast := map[string]bool{}
	for name, categories := range spec.CategoriesByName() {
		fast[name] = categories&spec.CategoriesOf("fast") != 0
	}
	return fast
}()
