package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes a module of tests that pass, fail, are skipped, panic, or do not build.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module redlock-proxy\n\ngo 1.24\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const head = "package p\n\nimport \"testing\"\n\n"

// TestRealRun watches real runs of go test: each kind of failure is told with its output,
// and listed in the end and in the file.
func TestRealRun(t *testing.T) {
	dir := module(t, map[string]string{
		"good/p_test.go":  head + "func TestGood(t *testing.T) {}\nfunc TestSkipped(t *testing.T) { t.Skip(\"no such thing here\") }\n",
		"bad/p_test.go":   head + "func TestBad(t *testing.T) {\n\tt.Run(\"fine\", func(t *testing.T) {})\n\tt.Run(\"wrong\", func(t *testing.T) { t.Error(\"what went wrong\") })\n}\n",
		"panic/p_test.go": head + "func TestPanic(t *testing.T) { panic(\"last words\") }\n",
		"leave/p_test.go": "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestLeave(t *testing.T) { os.Exit(3) }\n",
		"build/p_test.go": head + "func TestBuild(t *testing.T) { nosuch() }\n",
	})
	t.Chdir(dir)
	var out bytes.Buffer
	list := filepath.Join(t.TempDir(), "failed")
	code, err := watch([]string{"go", "test", "-json", "./..."}, false, list, &out)
	if code != 1 || err != nil {
		t.Errorf("got code %d, %v, want 1", code, err)
	}
	for _, want := range []string{"pass  good TestGood", "skip  good TestSkipped", "no such thing here", "ok    good",
		"FAIL  bad TestBad/wrong", "what went wrong", "last words", "nosuch", "2 tests passed"} {
		if want == "2 tests passed" {
			want = "1 tests passed, 1 were skipped, 4 failed"
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	listed, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bad TestBad/wrong\n", "panic TestPanic (a wrong answer)\n", "leave", "build"} {
		if !strings.Contains(string(listed), want) {
			t.Errorf("%q is not listed in\n%s", want, listed)
		}
	}
	if t.Failed() {
		t.Logf("it printed\n%s", &out)
	}
}

// TestWrongAnswer: a test that found a wrong answer is listed as such, so that it is not run again.
func TestWrongAnswer(t *testing.T) {
	for said, want := range map[string]string{
		"not 5 masters vote": "p TestX", "3 histories, 0 violations": "p TestX", "WARNING: DATA RACE": "p TestX (a wrong answer)",
		"2 OVERLAPS in 100 grants": "p TestX (a wrong answer)", "6 histories, 12 violations": "p TestX (a wrong answer)",
		"the lock was granted twice": "p TestX (a wrong answer)",
	} {
		r := newReport(io.Discard, true)
		r.take(event{Action: "output", Package: "p", Test: "TestX", Output: said + "\n"})
		r.take(event{Action: "fail", Package: "p", Test: "TestX"})
		if got := r.failed(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: listed %q, want %q", said, got, want)
		}
	}
}

// TestAllPass: nothing is listed, and quiet is quiet.
func TestAllPass(t *testing.T) {
	dir := module(t, map[string]string{"good/p_test.go": head + "func TestGood(t *testing.T) {}\n"})
	t.Chdir(dir)
	var out bytes.Buffer
	list := filepath.Join(t.TempDir(), "failed")
	code, err := watch([]string{"go", "test", "-json", "./..."}, true, list, &out)
	if _, missing := os.Stat(list); code != 0 || err != nil || missing == nil || strings.Contains(out.String(), "TestGood") ||
		!strings.Contains(out.String(), "1 tests passed, 0 were skipped, 0 failed") {
		t.Errorf("got code %d, %v and\n%s", code, err, &out)
	}
}

// TestNoCommand: what cannot be started is told.
func TestNoCommand(t *testing.T) {
	var out bytes.Buffer
	if code, err := watch([]string{"./nosuch"}, false, "", &out); code != 1 || err == nil {
		t.Errorf("got code %d, %v, want 1 and why", code, err)
	}
}
