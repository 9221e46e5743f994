//go:build integration

package clients

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// example is a program of docs/examples.md, and its output according to the page.
type example struct {
	name, language, text, output string
}

var examplePattern = regexp.MustCompile("(?ms)^### ([^\n]+)\n[^#]*?^```([a-z]+)\n(.*?)^```\n\n((?:    [^\n]*\n)+)")

// readExamples returns the programs on the page.
func readExamples(t *testing.T) []example {
	t.Helper()
	page, err := os.ReadFile("../../docs/examples.md")
	kit.Must(t, err)
	var list []example
	for _, m := range examplePattern.FindAllStringSubmatch(string(page), -1) {
		list = append(list, example{m[1], m[2], m[3], strings.ReplaceAll(m[4], "    ", "")})
	}
	if programs := strings.Count(string(page), "\n```\n"); len(list) != programs {
		t.Fatalf("found %d examples, but the page has %d programs", len(list), programs)
	}
	return list
}

// TestExamples runs each program of docs/examples.md, and compares its output with the page.
func TestExamples(t *testing.T) {
	upstream := kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), kit.LockKeyArgs(upstream)...)
	_, port, err := net.SplitHostPort(proxy.Addr())
	kit.Must(t, err)
	for _, e := range readExamples(t) {
		t.Run(fmt.Sprintf("%s in %s", e.name, e.language), func(t *testing.T) {
			e.text = strings.ReplaceAll(e.text, "6380", port)
			if got, err := run(e.command(t)...); err != nil || got != e.output {
				t.Errorf("it printed %q, %v; the page says %q", got, err, e.output)
			}
		})
	}
}

// command returns the words that run the program.
func (e example) command(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	write := func(name string) string {
		file := filepath.Join(folder, name)
		kit.Must(t, os.WriteFile(file, []byte(e.text), 0o600))
		return file
	}
	switch e.language {
	case "python":
		return []string{findProgram(t, "python").interpreter(t), write("example.py")}
	case "javascript":
		return []string{findProgram(t, "node").interpreter(t), write("example.js")}
	case "go":
		return []string{buildGo(t, write("example.go"))}
	case "java":
		redistest.SkipShort(t)
		return []string{"java", "-cp", compileJava(t, write("Job.java"), programPath("java/jedis")), "Job"}
	default:
		t.Fatalf("no way to run a program in %s", e.language)
		return nil
	}
}

// compileJava compiles a program and the classes that it uses from a folder, and returns the folder
// with the results.
func compileJava(t *testing.T, program, sources string) string {
	t.Helper()
	classes := t.TempDir()
	if output, err := exec.Command("javac", "-Xlint:all,-serial", "-Werror", "-implicit:class", "-sourcepath", sources,
		"-d", classes, program).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, output)
	}
	return classes
}
