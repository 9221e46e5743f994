package keyspace

import "redlock-proxy/commands/catalog/spec"

// entry is a command in the table of its group: its implementation, and its documentation for
// COMMAND DOCS without an upstream.
type entry struct {
	name           string
	run            func(c call) Reply
	since, summary string
}

// find returns the command with a name in lower case, or nil.
func find(name string) *command { return byName[name] }

// byName is read-only.
var byName = index(map[string][]entry{
	"string": stringCommands(), "generic": genericCommands(), "hash": hashCommands(), "list": listCommands(),
	"set": setCommands(), "sorted-set": sortedSetCommands(),
})

func index(groups map[string][]entry) map[string]*command {
	byName := map[string]*command{}
	for group, entries := range groups {
		for _, e := range entries {
			byName[e.name] = &command{entry: e, group: group, spec: spec.Find([]byte(e.name))}
		}
	}
	return byName
}

// fast has the commands that do not process all elements of their keys. The map is read-only.
var fast = func() map[string]bool {
	fast := map[string]bool{}
	for name, in := range spec.CategoriesIn() {
		fast[name] = in&spec.CategoriesOf("fast") != 0
	}
	return fast
}()
