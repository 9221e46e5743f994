//go:build integration

package compose

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readmeSection is the heading of the commands that are run.
const readmeSection = "## Deploy"

// testReadme types what README says into a terminal, on the ports that it names.
func testReadme(t *testing.T, e engine, image string) {
	if output, err := command(e.ctx, nil, "script", "--version"); err != nil || !strings.Contains(output, "util-linux") {
		skip(t, "README's commands, because no terminal can be had: there is no script of util-linux")
	}
	p := e.newProject(t, image, "readme")
	p.addrs = [2]string{"127.0.0.1:6380", "127.0.0.1:6381"}
	for _, addr := range p.addrs {
		wantFree(t, addr)
	}
	for _, line := range readmeLines(t) {
		typed := strings.ReplaceAll(line.command, "docker compose", strings.Join(p.compose, " "))
		got := ""
		settles(t, func() error {
			got = strings.ReplaceAll(p.run(t, p.env, "script", "-qec", typed, "/dev/null"), "\r\n", "\n")
			return late(got)
		})
		if want := strings.TrimSpace(line.output); want != "" && !matches(want, got) {
			t.Errorf("$ %s\ngot\n%s\nwant\n%s", line.command, got, want)
		}
		if strings.HasPrefix(line.command, "docker compose up") || strings.HasPrefix(line.command, "docker compose start") {
			p.becomesHealthy(t)
		}
	}
}

// wantFree skips where somebody uses the port that README names; where all must be tested, nobody may.
func wantFree(t *testing.T, addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	if err == nil {
		_ = listener.Close()
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	skip(t, "README's commands, because their ports are in use: "+err.Error())
}

// typedLine is a command of README with what README shows behind it.
type typedLine struct{ command, output string }

// readmeLines reads the section's commands, which begin with a dollar sign.
func readmeLines(t *testing.T) []typedLine {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n"+readmeSection+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var lines []typedLine
	for line := range strings.Lines(section) {
		shown, isShown := strings.CutPrefix(line, "    ")
		command, isCommand := strings.CutPrefix(shown, "$ ")
		switch {
		case isShown && isCommand:
			lines = append(lines, typedLine{command: strings.TrimSpace(command)})
		case isShown && len(lines) > 0:
			lines[len(lines)-1].output += shown
		}
	}
	if len(lines) == 0 {
		t.Fatalf("README has no commands below %q", readmeSection)
	}
	return lines
}

var digits = regexp.MustCompile(`[0-9]+`)

// matches compares, taking any number for any other.
func matches(want, got string) bool {
	return digits.ReplaceAllString(strings.TrimSpace(want), "0") == digits.ReplaceAllString(strings.TrimSpace(got), "0")
}
