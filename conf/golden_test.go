package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secret is the password in the bad files. No error may contain it.
const secret = "hunter2"

// wantedErrors returns the "# want:" lines of a bad file, with {file} replaced by its path.
func wantedErrors(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var wanted []string
	for line := range strings.SplitSeq(string(content), "\n") {
		if text, ok := strings.CutPrefix(line, "# want: "); ok {
			wanted = append(wanted, strings.ReplaceAll(text, "{file}", path))
		}
	}
	return wanted
}

// TestBadFiles loads every file in testdata. Each file begins with the expected errors.
func TestBadFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no bad files: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			wanted := strings.Join(wantedErrors(t, path), "\n")
			_, err := Load(Source{File: path, Environ: []string{"SECRET=" + secret}})
			if err == nil || err.Error() != wanted {
				t.Fatalf("got\n%v\nwant\n%s", err, wanted)
			}
			if strings.Contains(err.Error(), secret) {
				t.Fatalf("the error shows the password: %v", err)
			}
		})
	}
}

// TestExampleFile checks that conf.example.yaml has every setting, with its default.
func TestExampleFile(t *testing.T) {
	const path = "../conf.example.yaml"
	got, err := Load(Source{File: path})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Masters = []string{"redis://redis-1:6379", "redis://redis-2:6379", "redis://redis-3:6379"}
	if got.String() != want.String() {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if warnings := got.Warnings(); len(warnings) > 0 {
		t.Errorf("the example is not recommended: %q", warnings)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Settings() {
		if !strings.Contains(string(content), "\n"+s.Name+":") {
			t.Errorf("%s is missing", s.Name)
		}
		if commented := strings.Contains(string(content), ".\n"+s.Name+":") || s.Name == "master"; !commented {
			t.Errorf("%s has no comment above it", s.Name)
		}
	}
}
