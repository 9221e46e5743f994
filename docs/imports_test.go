package docs

import (
	"slices"
	"strings"
	"testing"
)

// below are the parts that a part may import, beside itself: those of production, then what tests
// have beside them.
var below = map[string][]string{
	"":         {"cli"},
	"cli":      {"daemon", "conf", "quorum", "internal"},
	"daemon":   {"admin", "conf", "proxy", "commands", "quorum", "internal"},
	"admin":    {"quorum"},
	"conf":     {"internal"},
	"proxy":    {"commands", "quorum", "internal"},
	"commands": {"quorum", "internal"},
	"quorum":   {"internal"},
	"internal": nil,
}

// kits are for tests alone, and may import what they test.
var kits = []string{"internal/model", "internal/fakeregister", "internal/redistest", "internal/process", "internal/certtest", "internal/logtest", "internal/randomcommands"}

// libraries import nothing of ours but what is in them.
var libraries = []string{"internal/lua"}

// TestImports: imports point down, and no kit of the tests is in the program.
func TestImports(t *testing.T) {
	for of, imported := range packages(t, "redlock-proxy/...") {
		allowed, known := below[part(of)]
		if !known || isKit(of) {
			continue // of tests
		}
		for _, path := range imported {
			other := within(path)
			switch {
			case !strings.HasPrefix(path, "redlock-proxy"):
			case isKit(other):
				t.Errorf("%s imports %s, which is for tests", of, other)
			case isIn(libraries, of) && !isIn(libraries, other):
				t.Errorf("%s imports %s: it is to be a library of its own", of, other)
			case part(other) != part(of) && !slices.Contains(allowed, part(other)):
				t.Errorf("%s imports %s, which is not below it", of, other)
			}
		}
	}
}

// rooms are those of package commands: each may use those after it.
var rooms = []string{"", "server", "move", "lockdetect", "locks", "lockkeys", "pubsub", "auth", "command", "rights", "catalog"}

// TestRooms: no room of commands needs one that needs it.
func TestRooms(t *testing.T) {
	for of, imported := range packages(t, "redlock-proxy/commands/...") {
		from := slices.Index(rooms, room(of))
		if from < 0 {
			t.Errorf("%s is in no room", of)
		}
		for _, path := range imported {
			if other := within(path); part(other) == "commands" && slices.Index(rooms, room(other)) < from {
				t.Errorf("%s imports %s, which is not after it", of, other)
			}
		}
	}
}

// room is the folder below commands that a package is in.
func room(of string) string {
	_, of, _ = strings.Cut(of, "/")
	return part(of)
}

// packages are what packages import, by their folders.
func packages(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, line := range lines(t, "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, pattern) {
		words := strings.Fields(line)
		all[within(words[0])] = words[1:]
	}
	return all
}

// within is a package's folder, empty for the first.
func within(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "redlock-proxy"), "/")
}

// part is the first folder of a package.
func part(of string) string {
	first, _, _ := strings.Cut(of, "/")
	return first
}

func isKit(of string) bool { return isIn(kits, of) }

// isIn reports whether a package is one of these, or below one.
func isIn(folders []string, of string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return of == folder || strings.HasPrefix(of, folder+"/") })
}
