package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"redlock-proxy/internal/process"
)

func TestRemoveOldBuilds(t *testing.T) {
	parent := t.TempDir()
	dead, err := process.Start("/bin/true", nil, nil)
	check(t, err)
	_, err = dead.Wait(waitLimit)
	check(t, err)
	ours := filepath.Join(parent, buildDirPrefix+strconv.Itoa(os.Getpid()))
	foreign := filepath.Join(parent, buildDirPrefix+"notes")
	old := filepath.Join(parent, buildDirPrefix+strconv.Itoa(dead.PID()))
	for _, dir := range []string{ours, foreign, old} {
		check(t, os.Mkdir(dir, 0o700))
	}
	removeOldBuilds(parent)
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	check(t, err)
	if len(left) != 2 || left[0] != ours || left[1] != foreign {
		t.Errorf("left: %v; want %v", left, []string{ours, foreign})
	}
}

// TestBuiltBefore: the program in TEST_PROXY is used as it is, and is not removed. It must be a
// program.
func TestBuiltBefore(t *testing.T) {
	program := filepath.Join(t.TempDir(), "proxy")
	check(t, os.WriteFile(program, nil, 0o700))
	notes := filepath.Join(t.TempDir(), "notes")
	check(t, os.WriteFile(notes, nil, 0o600))
	for path, fine := range map[string]bool{program: true, notes: false, t.TempDir(): false,
		filepath.Join(t.TempDir(), "nothing"): false} {
		t.Setenv(builtVariable, path)
		var b builder
		got, err := b.build(t.Context())
		if fine != (err == nil) || fine && got != path {
			t.Errorf("%s: got %s, %v, want it to be fine: %v", path, got, err, fine)
		}
		check(t, b.remove())
	}
	if _, err := os.Stat(program); err != nil {
		t.Errorf("the program was removed: %v", err)
	}
}
