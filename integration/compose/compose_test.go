//go:build integration

package compose

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// testCommit is the commit for the build of the image.
const testCommit = "0123456789ab-test"

// parallelTests is the number of parallel tests. The tests mostly wait for starts and stops. But
// each test runs about three health checks per second, and each check is a process.
const parallelTests = "2"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestCompose builds the image, checks it, executes README's commands, and tests the deployments.
// With -short, it does not test the deployments, and builds the image on this machine.
func TestCompose(t *testing.T) {
	e := findEngine(t)
	image := e.build(t)
	t.Run("image", func(t *testing.T) { testImage(t, e, image) })
	t.Run("README", func(t *testing.T) { testReadme(t, e, image) })
	t.Run("other deployments", func(t *testing.T) { testDeployments(t, e, image) })
}

// testDeployments starts docker-compose.yml alone, to measure the time. This deployment keeps
// running during the other tests.
func testDeployments(t *testing.T, e engine, image string) {
	redistest.SkipShort(t)
	p := e.newProject(t, image, "life").useFreePorts(t)
	started := t.Run("start", func(t *testing.T) { testStart(t, p) })
	t.Run("beside", func(t *testing.T) {
		if started {
			t.Run("life", func(t *testing.T) { testLifecycle(t, p) })
		}
		t.Run("TLS", func(t *testing.T) { testTLS(t, e, image) })
		t.Run("metrics", func(t *testing.T) { testMetrics(t, e, image) })
	})
}

// build builds the proxy's image under a name that contains the process ID.
func (e engine) build(t *testing.T) string {
	t.Helper()
	began, without := time.Now(), ""
	if testing.Short() {
		// These images are not needed: buildOnHost compiles the program, and no test uses metrics.
		without = "golang:|prom/|grafana/"
	}
	t.Log(e.run(t, nil, "integration/compose/stand-ins", without))
	provided := time.Now()
	image := fmt.Sprintf("redlock-proxy-test:%d", os.Getpid())
	t.Cleanup(func() {
		if output, err := runCommand(context.WithoutCancel(e.ctx), nil, "docker", "rmi", image); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	})
	if t.Run("compiled in a container", func(t *testing.T) { redistest.SkipShort(t) }); testing.Short() {
		e.buildOnHost(t, image)
	} else {
		p := e.newProject(t, image, "build")
		p.env = append(p.env, "COMMIT="+testCommit)
		p.runCompose(t, "build")
	}
	t.Logf("base images after %s, the proxy's image built in %s", seconds(provided.Sub(began)),
		seconds(time.Since(provided)))
	return image
}

// buildOnHost builds the image from the last stage of the Dockerfile and a program that it compiles
// on this machine. This is faster, because Go's build cache has most of the program.
func (e engine) buildOnHost(t *testing.T, image string) {
	t.Helper()
	dir := t.TempDir()
	e.run(t, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags", "-s -w -X main.commit="+testCommit, "-o",
		filepath.Join(dir, "redlock-proxy"), ".")
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "Dockerfile"))
	kit.Must(t, err)
	_, last, found := strings.Cut(string(text), "\nFROM ")
	if !found || strings.Contains(last, "\nFROM ") {
		t.Fatal("the Dockerfile has not two stages")
	}
	kit.Must(t, os.Mkdir(filepath.Join(dir, "state"), 0o755))
	kit.Must(t, os.WriteFile(filepath.Join(dir, "Dockerfile"),
		[]byte("FROM scratch AS build\nCOPY redlock-proxy /redlock-proxy\nCOPY state /state\nFROM "+last), 0o600))
	for _, name := range []string{"LICENSE", "NOTICE"} {
		text, err := os.ReadFile(filepath.Join(repositoryRoot, name))
		kit.Must(t, err)
		kit.Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	e.runDocker(t, "build", "--tag", image, dir)
}

// seconds formats a duration for the log.
func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// wantParts fails the test unless text contains each part.
func wantParts(t *testing.T, subject, text string, parts ...string) {
	t.Helper()
	missing := slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return strings.Contains(text, part) })
	if len(missing) > 0 {
		t.Errorf("%s: got %q, want it to say %q", subject, text, missing)
	}
}
