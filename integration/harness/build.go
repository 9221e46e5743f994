package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"redlock-proxy/internal/process"
)

// modulePath is the import path of the program to build, from any folder of the module.
const modulePath = "redlock-proxy"

// buildDirPrefix names the temporary folder of a build; the id of the process that made it follows.
const buildDirPrefix = "redlock-proxy-build-"

// builtVariable names in the environment a proxy that is built already: many packages tested one
// after another need not each build their own. It does not begin like the proxy's own settings.
const builtVariable = "TEST_PROXY"

// builder keeps the outcome of the one successful build.
type builder struct {
	mu   sync.Mutex
	path string
}

// processBuild is shared by all callers because a build takes seconds and its outcome cannot differ
// within one process.
var processBuild builder

// BuildProxy builds the proxy with the go tool, once per process, and returns the path of the
// binary. GOFLAGS counts, e.g. GOFLAGS=-race. Its folder is removed by RemoveBuild, or else by a
// later process that builds and finds that we have ended. Where TEST_PROXY names a program, that is
// the proxy, and nothing is built or removed.
func BuildProxy(ctx context.Context) (string, error) { return processBuild.build(ctx) }

// RemoveBuild removes what BuildProxy has built in this process, if anything.
func RemoveBuild() error { return processBuild.remove() }

func (b *builder) build(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path != "" {
		return b.path, nil
	}
	if built := os.Getenv(builtVariable); built != "" {
		return built, runs(built)
	}
	removeOldBuilds(os.TempDir())
	dir := filepath.Join(os.TempDir(), buildDirPrefix+strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("build the proxy: %w", err)
	}
	path := filepath.Join(dir, "redlock-proxy")
	output, err := exec.CommandContext(ctx, "go", "build", "-o", path, modulePath).CombinedOutput()
	if err != nil {
		return "", errors.Join(fmt.Errorf("build the proxy: %w\n%s", err, output), os.RemoveAll(dir))
	}
	b.path = path
	return path, nil
}

// runs wants a program at a path.
func runs(path string) error {
	file, err := os.Stat(path)
	if err == nil && (file.IsDir() || file.Mode()&0o111 == 0) {
		err = errors.New("no program is there")
	}
	if err != nil {
		return fmt.Errorf("the proxy that %s=%s names: %w", builtVariable, path, err)
	}
	return nil
}

func (b *builder) remove() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path == "" {
		return nil
	}
	dir := filepath.Dir(b.path)
	b.path = ""
	return os.RemoveAll(dir)
}

// removeOldBuilds removes the builds of processes that have ended. Whatever cannot be removed is
// left to the next one.
func removeOldBuilds(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, buildDirPrefix+"*"))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), buildDirPrefix))
		if err == nil && !process.Alive(pid) {
			_ = os.RemoveAll(dir)
		}
	}
}
