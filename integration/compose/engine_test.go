//go:build integration

package compose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// repositoryRoot is the folder of docker-compose.yml.
	repositoryRoot = "../.."
	// commandTimeout limits one command. The longest command builds everything on a busy machine.
	commandTimeout = 20 * time.Minute
)

// engine is a running Docker engine.
type engine struct {
	ctx            context.Context // ends with the test, or when the test is interrupted
	composeCommand []string        // docker compose or docker-compose
}

// findEngine returns a Docker engine. It skips the test if no engine replies.
func findEngine(t *testing.T) engine {
	t.Helper()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	if output, err := runCommand(ctx, nil, "docker", "version", "--format", "{{.Server.Version}}"); err != nil {
		skip(t, fmt.Sprintf("the image and docker-compose.yml, because no Docker engine answers: %v: %s", err,
			strings.TrimSpace(output)))
	}
	for _, compose := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if _, err := runCommand(ctx, nil, append(compose, "version")...); err == nil {
			return engine{ctx, compose}
		}
	}
	skip(t, "docker-compose.yml, because there is neither docker compose nor docker-compose (scripts/install-deps installs it)")
	return engine{}
}

// skip skips the test with a clear message, or fails it if all tests are required.
func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("REDLOCK_REQUIRE_ALL") == "1" {
		t.Fatalf("MISSING, and everything is required here: %s", reason)
	}
	t.Skipf("SKIPPED, NOT TESTED: %s", reason)
}

// run runs a program that must succeed, and returns its output.
func (e engine) run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	output, err := runCommand(e.ctx, env, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return strings.TrimSpace(output)
}

// runDocker runs a command of docker that must succeed.
func (e engine) runDocker(t *testing.T, args ...string) string {
	t.Helper()
	return e.run(t, nil, append([]string{"docker"}, args...)...)
}

// limitError returns the limit that ended a command, if there is one.
func limitError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("ended because it took longer than %v (commandTimeout in integration/compose/engine_test.go)",
			commandTimeout)
	}
	return ctx.Err()
}

// runCommand runs a program in the folder of docker-compose.yml, with additional environment
// variables, and returns its output to stdout and stderr.
func runCommand(ctx context.Context, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = repositoryRoot
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second // a child of the program may still hold the pipe
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(args, " "), errors.Join(err, limitError(ctx)))
	}
	return string(output), err
}
