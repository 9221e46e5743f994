//go:build integration

package compose

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readmeSection is the heading of the section with the commands.
const readmeSection = "## Deploy"

// testReadme runs the commands of README in a terminal. It replaces the ports by free ports,
// because the machine may use them.
func testReadme(t *testing.T, e engine, image string) {
	needTerminal(t, e)
	ports := []string{"6380", "6381"}
	config := e.newProject(t, image, "ports").runCompose(t, "config")
	p := e.newProject(t, image, "readme").useFreePorts(t)
	words := []string{"docker compose", strings.Join(p.composeCommand, " ")}
	for i, port := range ports {
		if !regexp.MustCompile(`127\.0\.0\.1:` + port + `:|published: "?` + port + `"?\n`).MatchString(config) {
			t.Errorf("docker-compose.yml does not publish README's port %s:\n%s", port, config)
		}
		words = append(words, "-p "+port, "-p "+portOf(p.addrs[i]))
	}
	typed := strings.NewReplacer(words...)
	for _, line := range pageCommands(t, "README.md", readmeSection) {
		p.runInTerminal(t, typed.Replace(line.command), line)
		if strings.HasPrefix(line.command, "docker compose up") || strings.HasPrefix(line.command, "docker compose start") {
			p.awaitHealthy(t)
		}
	}
}

// needTerminal skips the test if the program script, which provides a terminal, is missing.
func needTerminal(t *testing.T, e engine) {
	t.Helper()
	if output, err := runCommand(e.ctx, nil, "script", "--version"); err != nil || !strings.Contains(output, "util-linux") {
		skip(t, "commands of the pages, because no terminal can be had: there is no script of util-linux")
	}
}

// runInTerminal runs a command in a terminal, and fails the test unless its output is the output on
// the page.
func (p *project) runInTerminal(t *testing.T, input string, line pageCommand) {
	t.Helper()
	got := ""
	waitFor(t, func() error {
		got = strings.ReplaceAll(p.run(t, p.env, "script", "-qec", input, "/dev/null"), "\r\n", "\n")
		return lateReplyError(got)
	})
	if want := strings.TrimSpace(line.output); want != "" && !equalExceptNumbers(want, got) {
		t.Errorf("$ %s\ngot\n%s\nwant\n%s", line.command, got, want)
	}
}

// pageCommand is a command on a page with its output.
type pageCommand struct{ command, output string }

// pageCommands returns the commands of a section of a page, with their output. On the page, a
// dollar sign precedes each command.
func pageCommands(t *testing.T, page, section string) []pageCommand {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, page))
	if err != nil {
		t.Fatal(err)
	}
	_, shownText, _ := strings.Cut(string(text), "\n"+section+"\n")
	shownText, _, _ = strings.Cut(shownText, "\n##")
	var lines []pageCommand
	for line := range strings.Lines(shownText) {
		shown, isShown := strings.CutPrefix(line, "    ")
		command, isCommand := strings.CutPrefix(shown, "$ ")
		switch {
		case isShown && isCommand:
			lines = append(lines, pageCommand{command: strings.TrimSpace(command)})
		case isShown && len(lines) > 0:
			lines[len(lines)-1].output += shown
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s has no commands below %q", page, section)
	}
	return lines
}

var numberPattern = regexp.MustCompile(`[0-9]+`)

// equalExceptNumbers compares two texts, and treats all numbers as equal.
func equalExceptNumbers(want, got string) bool {
	return numberPattern.ReplaceAllString(strings.TrimSpace(want), "0") == numberPattern.ReplaceAllString(strings.TrimSpace(got), "0")
}
