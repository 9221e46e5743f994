package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestRequirements checks that go.mod lists the modules of the program before the modules for tests
// only.
func TestRequirements(t *testing.T) {
	linked := outputLines(t, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(strings.Join(outputLines(t, "go", "mod", "edit", "-json"), "\n")), &mod); err != nil {
		t.Fatal(err)
	}
	inTests := ""
	for _, require := range mod.Require {
		switch isLinked := slices.Contains(linked, require.Path); {
		case require.Indirect:
		case !isLinked:
			inTests = require.Path
		case inTests != "":
			t.Errorf("go.mod has %s, which is linked into the program, after %s, which is not", require.Path, inTests)
		}
	}
	if inTests == "" {
		t.Error("go.mod has no module for tests only")
	}
}

// outputLines returns the output of a command in the top folder of the repository.
func outputLines(t *testing.T, command ...string) []string {
	t.Helper()
	run := exec.Command(command[0], command[1:]...)
	run.Dir, run.Env = "..", append(os.Environ(), "GOOS=linux") // Linux links the most modules
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
