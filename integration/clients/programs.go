package clients

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

// folder is the path of this package's folder. It is valid in this folder and in the folders next
// to it, because tests run in the folder of their package.
const folder = "../clients"

// programPath returns the path of a program's file, such as python/lock.py.
func programPath(file string) string { return filepath.Join(folder, filepath.FromSlash(file)) }

// ProgramTimeout ends a program that hangs. On an idle machine each takes less than a second.
const ProgramTimeout = 15 * time.Minute

// requiredChecks returns the checks that each client program must report as passed.
func requiredChecks() []string {
	return []string{
		"ping", "lock", "held", "unlock-wrong-token", "extend", "unlock", "extend-after-unlock",
		"made-token", "block-runs-out", "block-served", "error-expire", "error-arity", "error-unknown", "select",
		"pipeline", "name",
	}
}

// program describes a client program with the client library of one language.
type program struct {
	name string
	// interpreters lists the interpreters to try. The distribution's interpreter is the first,
	// because it has the libraries.
	interpreters []string
	probe        []string // arguments with which an interpreter succeeds if it has the library
	script       string
	extraChecks  []string // checks in addition to requiredChecks
	installHint  string
}

// programs returns the programs that use LOCK and UNLOCK, except the Go program.
func programs() []program {
	return []program{
		{name: "python", interpreters: []string{"/usr/bin/python3", "python3"}, probe: []string{"-c", "import redis"},
			script: "python/lock.py", installHint: "apt-get install python3-redis"},
		{name: "ruby", interpreters: []string{"/usr/bin/ruby", "ruby"}, probe: []string{"-e", `require "redis"`},
			script: "ruby/lock.rb", installHint: "apt-get install ruby-redis"},
		{name: "php", interpreters: []string{"/usr/bin/php", "php"}, probe: []string{"-r",
			`exit(extension_loaded("redis") ? 0 : 1);`},
			script: "php/lock.php", installHint: "apt-get install php-cli php-redis"},
		{name: "node", interpreters: []string{"/usr/bin/node", "node"}, probe: []string{"-e", `require("redis")`},
			script: "node/lock.js", installHint: "apt-get install nodejs node-redis"},
		{name: "redis-cli", interpreters: []string{"bash"}, probe: []string{"-c", "command -v redis-cli"},
			script: "rediscli/lock.sh", installHint: "apt-get install redis-tools", extraChecks: []string{"resp3", "command-docs"}},
	}
}

// RunAll runs every program with the proxy, and fails the test unless all checks pass. It skips
// programs whose library is missing.
func RunAll(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	for _, c := range programs() {
		t.Run(c.name, func(t *testing.T) {
			interpreter := c.interpreter(t)
			RunChecks(t, proxy, append(requiredChecks(), c.extraChecks...), interpreter, programPath(c.script))
		})
	}
	t.Run("go-redis", func(t *testing.T) {
		RunChecks(t, proxy, append(requiredChecks(), "resp3"), buildProgram(t, "golang"))
	})
}

// interpreter returns the first interpreter that has the client's library.
func (c program) interpreter(t *testing.T) string {
	t.Helper()
	for _, interpreter := range c.interpreters {
		probe := exec.Command(interpreter, c.probe...)
		probe.Env = environment()
		if probe.Run() == nil {
			return interpreter
		}
	}
	redistest.SkipMissing(t, fmt.Sprintf("the client %s: %s", c.name, c.installHint))
	return ""
}

// PythonInterpreter returns an interpreter that has redis-py.
func PythonInterpreter(t *testing.T) string {
	t.Helper()
	all := programs()
	return all[slices.IndexFunc(all, func(c program) bool { return c.name == "python" })].interpreter(t)
}

// environment returns the environment of programs. It contains the path of Debian's node modules,
// which a node from another source does not know.
func environment() []string {
	path := "/usr/share/nodejs"
	if nodePath := os.Getenv("NODE_PATH"); nodePath != "" {
		path += string(os.PathListSeparator) + nodePath
	}
	return append(os.Environ(), "NODE_PATH="+path)
}

// RunChecks runs a program with HOST PORT, and fails the test unless the program prints "ok NAME"
// for each check.
func RunChecks(t *testing.T, proxy *harness.Proxy, checks []string, command ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	output, err := run(append(command, host, port)...)
	if err != nil {
		t.Fatalf("%v: %v\n%s\nThe proxy's log:\n%s", command, err, output, proxy.Log())
	}
	lines := strings.Split(output, "\n")
	for _, check := range checks {
		if !slices.Contains(lines, "ok "+check) {
			t.Fatalf("%v did not report check %q; its output:\n%s", command, check, output)
		}
	}
	t.Logf("%d checks passed: %s", len(checks), strings.Join(checks, " "))
}

// run runs a program, and returns its output to stdout and stderr.
func run(command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ProgramTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = environment()
	cmd.WaitDelay = time.Second // a child of the program may still have the pipe open
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// buildProgram builds a Go program, such as golang/locks, and returns its path.
func buildProgram(t *testing.T, directory string) string {
	t.Helper()
	return buildGo(t, "redlock-proxy/integration/clients/"+directory)
}

// buildGo builds a program from a package or a file, and returns its path.
func buildGo(t *testing.T, source string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "program")
	if output, err := exec.Command("go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", source, err, output)
	}
	return binary
}

// BuildWithHiredis compiles a program in C, such as c/relay.c, and returns its path.
func BuildWithHiredis(t *testing.T, source string) string {
	t.Helper()
	const installHint = "hiredis and a C compiler: apt-get install gcc libhiredis-dev"
	compiler, err := exec.LookPath("cc")
	if err != nil {
		redistest.SkipMissing(t, installHint)
	}
	probe := exec.Command(compiler, "-E", "-")
	probe.Stdin = strings.NewReader("#include <hiredis/hiredis.h>\n")
	if probe.Run() != nil {
		redistest.SkipMissing(t, installHint)
	}
	binary := filepath.Join(t.TempDir(), "program")
	build := exec.Command(compiler, "-Wall", "-Wextra", "-Werror", "-o", binary, programPath(source), "-lhiredis")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return binary
}
