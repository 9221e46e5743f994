//go:build integration

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

func TestMain(m *testing.M) { kit.Main(m) }

// repositoryRoot is the folder of the repository.
const repositoryRoot = "../../"

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(repositoryRoot + path)
	kit.Must(t, err)
	return string(text)
}

// writeFile creates a file that only its owner can read, and returns its path.
func writeFile(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	kit.Must(t, os.WriteFile(path, []byte(text), 0o400))
	return path
}

// requireProgram skips a test if a program is missing.
func requireProgram(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		redistest.SkipMissing(t, program)
	}
}

// environ returns the environment of this process without the variables REDLOCK_*, and with the
// given entries.
func environ(extraEntries ...string) []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "REDLOCK_") {
			env = append(env, entry)
		}
	}
	return append(env, extraEntries...)
}
