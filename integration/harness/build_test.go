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
	must(t, err)
	_, err = dead.Wait(waitLimit)
	must(t, err)
	ours := filepath.Join(parent, buildDirPrefix+strconv.Itoa(os.Getpid()))
	foreign := filepath.Join(parent, buildDirPrefix+"notes")
	old := filepath.Join(parent, buildDirPrefix+strconv.Itoa(dead.PID()))
	for _, dir := range []string{ours, foreign, old} {
		must(t, os.Mkdir(dir, 0o700))
	}
	removeOldBuilds(parent)
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	must(t, err)
	if len(left) != 2 || left[0] != ours || left[1] != foreign {
		t.Errorf("left: %v; want %v", left, []string{ours, foreign})
	}
}

// TestProgramFromEnvironment checks that build returns the path in TEST_PROXY, and that remove does
// not delete the program at that path. If the path leads to no program, build returns an error.
func TestProgramFromEnvironment(t *testing.T) {
	program := filepath.Join(t.TempDir(), "proxy")
	must(t, os.WriteFile(program, nil, 0o700))
	notes := filepath.Join(t.TempDir(), "notes")
	must(t, os.WriteFile(notes, nil, 0o600))
	for path, wantSuccess := range map[string]bool{program: true, notes: false, t.TempDir(): false,
		filepath.Join(t.TempDir(), "nothing"): false} {
		t.Setenv(programEnv, path)
		var b builder
		got, err := b.build(t.Context())
		if wantSuccess != (err == nil) || wantSuccess && got != path {
			t.Errorf("%s: got %s, %v, want it to be fine: %v", path, got, err, wantSuccess)
		}
		must(t, b.remove())
	}
	if _, err := os.Stat(program); err != nil {
		t.Errorf("the program was removed: %v", err)
	}
}
