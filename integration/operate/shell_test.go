//go:build integration

package operate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// skipWithout skips a test if the program is not installed.
func skipWithout(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		redistest.SkipMissing(t, program)
	}
}

// writeOutputFile runs a command of the proxy, and returns the path of a file with its output.
func writeOutputFile(t *testing.T, args ...string) (path string) {
	t.Helper()
	got := runProxy(t, args...)
	if got.code != 0 || got.stderr != "" || got.stdout == "" {
		t.Fatalf("%v: %+v", args, got)
	}
	path = filepath.Join(t.TempDir(), "printed")
	kit.Must(t, os.WriteFile(path, []byte(got.stdout), 0o600))
	return path
}

// runShell runs a script with arguments in a folder, and returns its output.
func runShell(t *testing.T, dir, program, script string, args ...string) string {
	t.Helper()
	skipWithout(t, program)
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"-c", script, program}, args...)...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, output)
	}
	return string(output)
}

// TestBashCompletion checks how bash completes the last word of a command line.
func TestBashCompletion(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	script, folder := writeOutputFile(t, "completion", "bash"), t.TempDir()
	for _, file := range []string{"settings one.yaml", "settings.yaml"} {
		kit.Must(t, os.WriteFile(filepath.Join(folder, file), nil, 0o600))
	}
	for _, c := range []struct{ words, want string }{
		{"", "serve demo check init healthcheck lock move version completion man help"},
		{"he", "healthcheck help"},
		{"--v", "--version"},
		{"serve|--lo", "--lock-keys --lock-tags --lock-class --locks-without-ttl --log-level --log-format"},
		{"serve|--lock-keys|x|--lock-k", "--lock-keys"}, // the flag may be repeated
		{"serve|--check", "--check-config"},
		{"check|--jso", "--json"},
		{"init|--on", "--once"},
		{"init|--once|sett", "settings one.yaml settings.yaml"},
		{"serve|--config|=|settings.", "settings.yaml"},
		{"serve|--config|=", "settings one.yaml settings.yaml"},
		{"serve|--listen|", ""},
		{"serve|--listen|=|1", ""},
		{"serve|", ""},
		{"completion|", "bash zsh"},
		{"-v|serve|--locks", "--locks-without-ttl"},
		{"no-such|--l", ""},
		{"serve|--config|$(touch run)", ""},
		{"serve|--config|`touch run`|--guar", "--guard"},
		{"$(touch run)|--guar", ""},
	} {
		t.Run(c.words, func(t *testing.T) {
			got := runShell(t, folder, "bash",
				`. "$1"; shift; COMP_WORDS=(redlock-proxy "$@"); COMP_CWORD=$#; _redlock_proxy; echo "${COMPREPLY[*]}"`,
				append([]string{script}, strings.Split(c.words, "|")...)...)
			if got = strings.TrimSpace(got); sortWords(got) != sortWords(c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if _, err := os.Stat(filepath.Join(folder, "run")); err == nil {
				t.Error("what is typed was run")
			}
		})
	}
	if got := runShell(t, folder, "bash", `. "$1"; complete -p redlock-proxy`,
		script); got != "complete -F _redlock_proxy redlock-proxy\n" {
		t.Errorf("bash has %q", got)
	}
}

func sortWords(words string) string {
	list := strings.Fields(words)
	slices.Sort(list)
	return strings.Join(list, " ")
}

// TestZshCompletion checks how an interactive zsh completes a line with the tab key.
func TestZshCompletion(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	skipWithout(t, "zsh")
	script, folder := writeOutputFile(t, "completion", "zsh"), t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(folder, "settings.yaml"), nil, 0o600))
	cases := []struct{ input, want string }{
		{"heal\t", "healthcheck"},
		{"serve --check\t", "serve --check-config"},
		{"serve --lock-keys a --lock-k\tb", "serve --lock-keys a --lock-keys=b"},
		{"serve --config set\t", "serve --config settings.yaml"},
		{"serve --config=set\t", "serve --config=settings.yaml"},
		{"completion b\t", "completion bash"},
	}
	args := []string{script}
	for _, c := range cases {
		args = append(args, c.input)
	}
	outputs := strings.Split(runShell(t, folder, "zsh", `
		zmodload zsh/zpty
		zpty z "zsh -f -i"
		zpty -w z "PS1= PS2=; autoload -Uz compinit; compinit -u -D; source $1; redlock-proxy() { print -r -- \"GOT:\$*:\" }; print READ''Y"
		zpty -r z seen "*READY*"
		shift
		for typed; do
			zpty -w -n z "redlock-proxy $typed"$'\n'
			zpty -r z seen "*GOT:*:*"
			print -r -- $seen
		done
		zpty -d z`, args...), "GOT:")
	if len(outputs) != 1+len(cases) {
		t.Fatalf("zsh said\n%q", outputs)
	}
	for i, c := range cases {
		if got, _, _ := strings.Cut(outputs[i+1], ":"); strings.TrimSpace(got) != c.want {
			t.Errorf("%q: got %q, want %q", c.input, got, c.want)
		}
	}
}

// TestCompletionErrors checks that completion without a shell, or with an unknown shell, returns an
// error.
func TestCompletionErrors(t *testing.T) {
	t.Parallel()
	wantFailure(t, runProxy(t, "completion"), `redlock-proxy: unknown shell ""; use bash or zsh`)
	wantFailure(t, runProxy(t, "completion", "fish"), `redlock-proxy: unknown shell "fish"; use bash or zsh`)
	wantFailure(t, runProxy(t, "completion", "bash", "zsh"), `redlock-proxy: unexpected argument "zsh"`)
	wantFailure(t, runProxy(t, "man", "me"), `redlock-proxy: unexpected argument "me"`)
}

// TestManual checks that man reports no warnings, and that the page has its main parts. These parts
// are the name, the settings with their defaults, the commands, and the exit codes.
func TestManual(t *testing.T) {
	t.Parallel()
	page := writeOutputFile(t, "man")
	skipWithout(t, "man")
	cmd := exec.Command("man", "--warnings=w", "-l", page)
	cmd.Env = append(harness.Environ(), "MANWIDTH=80", "LC_ALL=C.UTF-8", "MANPAGER=cat", "MANOPT=")
	var warnings strings.Builder
	cmd.Stderr = &warnings
	renderedPage, err := cmd.Output()
	if err != nil || warnings.Len() > 0 {
		t.Errorf("man: %v\n%s", err, &warnings)
	}
	for _, want := range []string{"redlock-proxy - distributed locks", "--max-ttl DURATION", "REDLOCK_MAX_TTL",
		"(default: 24h)", "healthcheck", "--longest-ttl", "EXIT STATUS"} {
		if !strings.Contains(string(renderedPage), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	skipWithout(t, "groff")
	if output, err := exec.Command("groff", "-man", "-ww", "-z", "-Tutf8", page).CombinedOutput(); err != nil ||
		len(output) > 0 {
		t.Errorf("groff: %v\n%s", err, output)
	}
}
