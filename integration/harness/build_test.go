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
