// Package docs checks that the pages agree with the code: with its names, files, alerts and
// versions.
package docs

import (
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

// TestLinks checks that each link of a page to a file of the repository leads to an existing file
// and, if it has an anchor, to a heading.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range append(pages, "../README.md", "../SECURITY.md", "../CONTRIBUTING.md", "../CHANGELOG.md",
		"../proxy/RELAY.md", "../quorum/REGISTER.md", "../quorum/guard/GUARD.md") {
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
