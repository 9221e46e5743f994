// Package docs checks that the pages agree with the code: with its names, files, alerts and
// versions.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readFile returns the content of a file.
func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestArchitecture checks that each function that architecture.md names as `file:function` is in
// that file.
func TestArchitecture(t *testing.T) {
	named := regexp.MustCompile("`([a-z_/]+\\.go):([A-Za-z]+)`").FindAllStringSubmatch(readFile(t, "architecture.md"), -1)
	if len(named) == 0 {
		t.Fatal("architecture.md names no function")
	}
	for _, n := range named {
		source, err := os.ReadFile(filepath.Join("..", n[1]))
		if err != nil || !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+n[2]+`\(`).Match(source) {
			t.Errorf("there is no %s in %s", n[2], n[1])
		}
	}
}

// otherPages lists the pages outside docs.
var otherPages = []string{"../README.md", "../SECURITY.md", "../CONTRIBUTING.md", "../CHANGELOG.md",
	"../proxy/RELAY.md", "../quorum/REGISTER.md", "../quorum/guard/GUARD.md", "../internal/model/README.md"}

// TestNamedTests checks that each test and each Go file that a page names exists. CHANGELOG.md names
// what there was, suites.md the tests of other projects.
func TestNamedTests(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, files := goNames(t)
	if len(tests) < 1_000 {
		t.Fatalf("found only %d tests", len(tests))
	}
	test := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	file := regexp.MustCompile("`([\\w/.-]+\\.go)`")
	for _, page := range append(pages, otherPages...) {
		if page == "suites.md" || page == "../CHANGELOG.md" {
			continue
		}
		text := readFile(t, page)
		for _, name := range test.FindAllString(text, -1) {
			if !slices.ContainsFunc(tests, func(known string) bool { return strings.HasPrefix(known, name) }) {
				t.Errorf("%s: there is no test %s", page, name)
			}
		}
		for _, found := range file.FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(files, func(path string) bool { return strings.HasSuffix(path, "/"+found[1]) }) {
				t.Errorf("%s: there is no file %s", page, found[1])
			}
		}
	}
}

// goNames returns the names of all tests and the paths of all Go files.
func goNames(t *testing.T) (tests, files []string) {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		files = append(files, path)
		for _, found := range declared.FindAllStringSubmatch(readFile(t, path), -1) {
			tests = append(tests, found[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests, files
}

// TestLinks checks that each link of a page to a file of the repository leads to an existing file
// and, if it has an anchor, to a heading.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range append(pages, otherPages...) {
		for _, found := range link.FindAllStringSubmatch(readFile(t, page), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if anchor != "" && !hasHeading(readFile(t, path), anchor) {
				t.Errorf("%s: %s has no heading %q", page, path, anchor)
			}
		}
	}
}

// TestFigures checks that each number under Measured in README is also under Results in
// benchmarks.md.
func TestFigures(t *testing.T) {
	section := func(path, heading string) string {
		_, body, found := strings.Cut(readFile(t, path), "\n"+heading+"\n")
		if !found {
			t.Fatalf("%s has no section %q", path, heading)
		}
		body, _, _ = strings.Cut(body, "\n## ")
		return body
	}
	figure := regexp.MustCompile(`\d[\d,.]*\d|\d`)
	results := figure.FindAllString(section("benchmarks.md", "## Results"), -1)
	quoted := figure.FindAllString(section("../README.md", "## Measured"), -1)
	if len(quoted) == 0 {
		t.Fatal("README quotes no figure")
	}
	for _, q := range quoted {
		if !slices.Contains(results, q) {
			t.Errorf("README quotes %s, which benchmarks.md does not have under Results", q)
		}
	}
}

// TestAlerts checks that the runbook has exactly one row for each alert, in the same order.
func TestAlerts(t *testing.T) {
	names := func(pattern, path string) (all []string) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(readFile(t, path), -1) {
			all = append(all, found[1])
		}
		return all
	}
	alerts, rows := names(`(?m)- alert: (\w+)$`, "../deploy/prometheus/alerts.yml"),
		names("(?m)^\\| `(Redlock\\w+)` \\|", "runbook.md")
	if len(alerts) == 0 || !slices.Equal(rows, alerts) {
		t.Errorf("the runbook has rows for %v, and the alerts are %v", rows, alerts)
	}
}

// hasHeading reports whether a page has a heading with this anchor.
func hasHeading(page, anchor string) bool {
	for line := range strings.Lines(page) {
		words := strings.TrimLeft(line, "#")
		if words == line {
			continue
		}
		slug := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(words)), "")
		if strings.ReplaceAll(slug, " ", "-") == anchor {
			return true
		}
	}
	return false
}
