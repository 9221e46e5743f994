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

// modulePath is the path of the module, and the import path of the program to build.
const modulePath = "redlock-proxy"

// buildDirPrefix is the beginning of the name of a build's temporary folder. The process ID
// follows.
const buildDirPrefix = "redlock-proxy-build-"

// programEnv names the environment variable with the path of a proxy to use, so that the tests of
// many packages do not each build it. The name lacks the prefix REDLOCK_, which marks the proxy's
// own settings.
const programEnv = "TEST_PROXY"

// builder holds the result of the one successful build.
type builder struct {
	mu   sync.Mutex
	path string
}

// processBuild holds the build of this process.
var processBuild builder

// BuildProxy builds the proxy with the go tool, once per process, and returns the path of the
// binary. GOFLAGS applies, for example GOFLAGS=-race. RemoveBuild removes the binary; otherwise, a
// later build removes it after this process has ended. If TEST_PROXY is set, BuildProxy returns
// that path, and builds nothing.
func BuildProxy(ctx context.Context) (string, error) { return processBuild.build(ctx) }

// RemoveBuild removes the build of this process, if there is one.
func RemoveBuild() error { return processBuild.remove() }

func (b *builder) build(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.path != "" {
		return b.path, nil
	}
	if built := os.Getenv(programEnv); built != "" {
		return built, checkProgram(built)
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

// checkProgram returns an error unless there is a program at a path.
func checkProgram(path string) error {
	file, err := os.Stat(path)
	if err == nil && (file.IsDir() || file.Mode()&0o111 == 0) {
		err = errors.New("it is not a program")
	}
	if err != nil {
		return fmt.Errorf("the proxy that %s=%s names: %w", programEnv, path, err)
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

// removeOldBuilds removes the builds of processes that have ended. It ignores errors, because the
// next build tries again.
func removeOldBuilds(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, buildDirPrefix+"*"))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), buildDirPrefix))
		if err == nil && !process.Alive(pid) {
			_ = os.RemoveAll(dir)
		}
	}
}
