//go:build integration

package operate

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// outcome holds the output and the exit code of a command of the proxy.
type outcome struct {
	code           int
	stdout, stderr string
}

// binary returns the path of the built proxy.
func binary(t *testing.T) string {
	t.Helper()
	path, err := harness.BuildProxy(context.Background())
	kit.Must(t, err)
	return path
}

// runProxy runs one command of the proxy until it ends.
func runProxy(t *testing.T, args ...string) outcome {
	t.Helper()
	return runProxyWith(t, nil, args...)
}

// runProxyWith runs a command of the proxy with the environment variables env, and no other
// variables of the proxy.
func runProxyWith(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	program := binary(t) // the first call builds the program, which may take longer
	ctx, cancel := context.WithTimeout(context.Background(), kit.WaitLimit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(kit.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%v did not end within %v:\n%s%s", args, kit.WaitLimit, &stdout, &stderr)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// wantFailure fails the test unless the command exited with 1 and printed the lines to stderr.
func wantFailure(t *testing.T, got outcome, lines ...string) {
	t.Helper()
	want := strings.Join(lines, "\n") + "\n"
	if got.code != 1 || got.stderr != want {
		t.Errorf("got exit code %d and\n%swant 1 and\n%s", got.code, got.stderr, want)
	}
}

// refusesClients reports whether the proxy refuses new clients.
func refusesClients(proxy *harness.Proxy) bool {
	client, err := redistest.Dial(proxy.Addr(), time.Second)
	if err == nil {
		_ = client.Close()
	}
	return err != nil
}
