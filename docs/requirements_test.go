package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestRequirements: go.mod names what the program is made of first, and then what is for tests
// alone.
func TestRequirements(t *testing.T) {
	linked := lines(t, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(strings.Join(lines(t, "go", "mod", "edit", "-json"), "\n")), &mod); err != nil {
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
		t.Error("no requirement is for tests alone")
	}
}

// lines are what a command run in the first folder prints.
func lines(t *testing.T, command ...string) []string {
	t.Helper()
	run := exec.Command(command[0], command[1:]...)
	run.Dir, run.Env = "..", append(os.Environ(), "GOOS=linux") // what other systems have is less
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
