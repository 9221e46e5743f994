package docs

import (
	"slices"
	"strings"
	"testing"
)

// allowedImports lists the top-level folders that each top-level folder may import, in addition to
// itself.
var allowedImports = map[string][]string{
	"":         {"cli"},
	"cli":      {"daemon", "conf", "quorum", "internal"},
	"daemon":   {"admin", "conf", "proxy", "commands", "quorum", "internal"},
	"admin":    {"quorum", "internal"},
	"conf":     {"internal"},
	"proxy":    {"commands", "quorum", "internal"},
	"commands": {"quorum", "internal"},
	"quorum":   {"internal"},
	"internal": nil,
}

// testKits lists packages for tests only. They may import the packages that they test.
var testKits = []string{
	"internal/model", "internal/fakeregister", "internal/redistest", "internal/process",
	"internal/certtest", "internal/logtest", "internal/randomcommands",
}

// libraries lists folders. Their packages import no package of this module outside these folders.
var libraries = []string{"internal/lua"}

// TestImports checks that each package imports only allowed folders, and that the program imports
// no test kit.
func TestImports(t *testing.T) {
	for pkg, imports := range importsOf(t, "redlock-proxy/...") {
		allowed, known := allowedImports[topFolder(pkg)]
		if !known || isTestKit(pkg) {
			continue // a package for tests
		}
		for _, path := range imports {
			other := folderOf(path)
			switch {
			case !strings.HasPrefix(path, "redlock-proxy"):
			case isTestKit(other):
				t.Errorf("%s imports %s, which is for tests", pkg, other)
			case isInFolders(libraries, pkg) && !isInFolders(libraries, other):
				t.Errorf("%s imports %s: a library must not depend on the rest of the module", pkg, other)
			case topFolder(other) != topFolder(pkg) && !slices.Contains(allowed, topFolder(other)):
				t.Errorf("%s imports %s, which allowedImports does not have", pkg, other)
			}
		}
	}
}

// commandFolders lists the folders of commands. Each may import only the folders after it.
var commandFolders = []string{
	"", "server", "move", "lockdetect", "locks", "lockkeys", "pubsub", "auth", "command", "rights", "catalog",
}

// TestCommandFolders checks that the folders of commands import each other only in the order of
// commandFolders.
func TestCommandFolders(t *testing.T) {
	for pkg, imports := range importsOf(t, "redlock-proxy/commands/...") {
		from := slices.Index(commandFolders, commandFolder(pkg))
		if from < 0 {
			t.Errorf("commandFolders does not have the folder of %s", pkg)
		}
		for _, path := range imports {
			other := folderOf(path)
			if topFolder(other) == "commands" && slices.Index(commandFolders, commandFolder(other)) < from {
				t.Errorf("%s imports %s, which is before it in commandFolders", pkg, other)
			}
		}
	}
}

// commandFolder returns the folder of a package, as seen from the folder commands.
func commandFolder(folder string) string {
	_, below, _ := strings.Cut(folder, "/")
	return topFolder(below)
}

// importsOf returns the import paths of the packages that match a pattern, by the folder of the
// package.
func importsOf(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, line := range outputLines(t, "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, pattern) {
		words := strings.Fields(line)
		all[folderOf(words[0])] = words[1:]
	}
	return all
}

// folderOf returns the folder of a package of this module. It is empty for the top folder.
func folderOf(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "redlock-proxy"), "/")
}

// topFolder returns the first element of a folder.
func topFolder(folder string) string {
	first, _, _ := strings.Cut(folder, "/")
	return first
}

func isTestKit(pkg string) bool { return isInFolders(testKits, pkg) }

// isInFolders reports whether a package is in one of the folders, or below one.
func isInFolders(folders []string, pkg string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return pkg == folder || strings.HasPrefix(pkg, folder+"/")
	})
}
