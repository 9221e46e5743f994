package docs

import (
	"regexp"
	"strings"
	"testing"
)

// mainVersion returns the version in main.go.
func mainVersion(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^const version = "(\d+\.\d+\.\d+(-\S+)?)"$`).FindStringSubmatch(readFile(t, "../main.go"))
	if found == nil {
		t.Fatal("main.go has no version")
	}
	return found[1]
}

// TestRelease checks that CHANGELOG begins with the section of the version and its date, or with
// Unreleased for a pre-release. It also checks that the chart and the images in docs/deploy.md have
// the same version.
func TestRelease(t *testing.T) {
	v := mainVersion(t)
	want := `^## ` + regexp.QuoteMeta(v) + ` - \d{4}-\d\d-\d\d$`
	if strings.Contains(v, "-") {
		want = `^## Unreleased$`
	}
	if first := regexp.MustCompile(`(?m)^## .*$`).FindString(readFile(t,
		"../CHANGELOG.md")); !regexp.MustCompile(want).MatchString(first) {
		t.Errorf("CHANGELOG begins with %q, want %s", first, want)
	}
	chart := readFile(t, "../deploy/helm/redlock-proxy/Chart.yaml")
	for _, line := range []string{"\nversion: " + v + "\n", "\nappVersion: \"" + v + "\"\n"} {
		if !strings.Contains(chart, line) {
			t.Errorf("there is no %q in Chart.yaml", line)
		}
	}
	images := regexp.MustCompile(`redlock-proxy:(\d\S*?)[\s`+"`"+`]`).FindAllStringSubmatch(readFile(t, "deploy.md"), -1)
	if len(images) == 0 {
		t.Error("deploy.md names no image")
	}
	for _, image := range images {
		if image[1] != v {
			t.Errorf("deploy.md has the image redlock-proxy:%s, want %s", image[1], v)
		}
	}
}
