//go:build integration

package compose

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxImageSize is the maximum size of the unpacked image in bytes. The program has 30 MB, of which
// the metrics take 4 MB.
const maxImageSize = 31_000_000

// testImage checks the size, the user, the health check, the version and the files of the image.
func testImage(t *testing.T, e engine, image string) {
	var imageInfo []struct {
		Size   int
		Config struct {
			User        string
			Healthcheck struct{ Test []string }
		}
	}
	if err := json.Unmarshal([]byte(e.runDocker(t, "image", "inspect", image)), &imageInfo); err != nil {
		t.Fatal(err)
	}
	got := imageInfo[0]
	t.Logf("the image has %.1f MB", float64(got.Size)/1e6)
	if got.Size > maxImageSize {
		t.Errorf("the image has %d bytes, want at most %d", got.Size, maxImageSize)
	}
	if got.Config.User != "65532:65532" {
		t.Errorf("it runs as %q, want a number that is not root's", got.Config.User)
	}
	if want := []string{"CMD", "/redlock-proxy", "healthcheck"}; !slices.Equal(got.Config.Healthcheck.Test, want) {
		t.Errorf("its health check is %q, want %q", got.Config.Healthcheck.Test, want)
	}
	if got, want := e.runDocker(t, "run", "--rm", image, "version"), "(commit "+testCommit+", go"; !strings.Contains(got, want) {
		t.Errorf("version: got %q, want %q in it", got, want)
	}
	output, err := runCommand(e.ctx, nil, "docker", "run", "--rm", image, "healthcheck")
	if err == nil {
		t.Errorf("healthcheck where no proxy runs: got success and %q, want a failure", output)
	}
	wantParts(t, "healthcheck where no proxy runs", output, "unhealthy:", "connection refused")
	testFiles(t, e, image)
}

// testFiles fails the test unless the image has a static program, the licences, and no shell.
func testFiles(t *testing.T, e engine, image string) {
	t.Helper()
	container := e.runDocker(t, "create", image)
	defer e.runDocker(t, "rm", container)
	exported := filepath.Join(t.TempDir(), "files.tar")
	e.runDocker(t, "export", "--output", exported, container)
	file, err := os.Open(exported)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found := map[string]bool{}
	for files := tar.NewReader(file); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		whole := strings.Trim(header.Name, "./")
		found[whole] = true
		switch name := path.Base(header.Name); {
		case slices.Contains([]string{"sh", "ash", "bash", "dash", "busybox", "apt", "dpkg"}, name) &&
			header.Typeflag != tar.TypeDir:
			t.Errorf("the image holds %s", header.Name)
		case whole == "redlock-proxy":
			wantStatic(t, files)
		}
	}
	for _, name := range []string{"redlock-proxy", "licenses/LICENSE", "licenses/NOTICE"} {
		if !found[name] {
			t.Errorf("the image holds no /%s", name)
		}
	}
}

// wantStatic reads a program, and fails the test if it needs a loader or a library.
func wantStatic(t *testing.T, program io.Reader) {
	t.Helper()
	content, err := io.ReadAll(program)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range binary.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("the program is linked dynamically: it has a %v", part.Type)
		}
	}
}
