//go:build integration

package compose

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// waitLimit limits the wait for slow changes, mainly for health checks.
const waitLimit = 3 * time.Minute

// services returns the services of docker-compose.yml that keep running, without those of its
// profiles.
func services() []string {
	return []string{"lock-1", "lock-2", "lock-3", "lock-4", "lock-5", "proxy-1", "proxy-2", "redis"}
}

// project is one deployment, with its own name and ports.
type project struct {
	engine
	name  string
	env   []string
	addrs [2]string // of proxy-1 and proxy-2
}

// patientProxies gives masters on a busy machine more time to answer.
const patientProxies = `
x-proxy: &proxy
  environment: {REDLOCK_MASTER_TIMEOUT: 5s}
services:
  init: *proxy
  proxy-1: *proxy
  proxy-2: *proxy
`

// newProject creates a deployment of an image, from docker-compose.yml and further files. It
// removes all parts of the deployment when the test ends.
func (e engine) newProject(t *testing.T, image, name string, files ...string) *project {
	t.Helper()
	p := &project{engine: e, name: fmt.Sprintf("redlock-test-%s-%d", name, os.Getpid())}
	patient := filepath.Join(t.TempDir(), "patient.yml")
	kit.Must(t, os.WriteFile(patient, []byte(patientProxies), 0o644))
	files = append(append([]string{"docker-compose.yml"}, files...), patient)
	p.env = []string{"COMPOSE_PROJECT_NAME=" + p.name, "PROXY_IMAGE=" + image,
		"COMPOSE_FILE=" + strings.Join(files, string(os.PathListSeparator))}
	t.Cleanup(func() {
		down := append(slices.Clone(p.composeCommand), "down", "--volumes", "--remove-orphans")
		if output, err := runCommand(context.WithoutCancel(p.ctx), p.env, down...); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	})
	return p
}

// useFreePorts gives the project free ports, so that it can run next to other projects.
func (p *project) useFreePorts(t *testing.T) *project {
	t.Helper()
	for i := range p.addrs {
		addr, err := redistest.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		p.addrs[i] = addr
		p.env = append(p.env, fmt.Sprintf("PROXY_%d_PORT=%s", i+1, portOf(addr)))
	}
	return p
}

func portOf(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		panic(err) // the tests pass only valid addresses
	}
	return port
}

// runCompose runs a command of Compose that must succeed.
func (p *project) runCompose(t *testing.T, args ...string) string {
	t.Helper()
	return p.run(t, p.env, append(slices.Clone(p.composeCommand), args...)...)
}

// execIn runs a program in the container of a service.
func (p *project) execIn(service string, args ...string) (string, error) {
	return runCommand(p.ctx, p.env, append(append(slices.Clone(p.composeCommand), "exec", "-T", service), args...)...)
}

// containers maps each service to the ID of its container, even if the container has exited.
func (p *project) containers(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(p.list(t, "{{.ID}}")) {
		service, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[service] = id
	}
	return found
}

// list returns a line for each container of the project: its service, and the formatted fields.
func (p *project) list(t *testing.T, format string) string {
	t.Helper()
	return p.runDocker(t, "ps", "--all", "--filter", "label=com.docker.compose.project="+p.name,
		"--format", `{{.Label "com.docker.compose.service"}} `+format)
}

// awaitHealthy waits until all services of the function services are healthy.
func (p *project) awaitHealthy(t *testing.T) {
	t.Helper()
	waitFor(t, func() error {
		status := p.list(t, "{{.Status}}")
		if healthy := strings.Count(status, "(healthy)"); healthy != len(services()) {
			return fmt.Errorf("%d of %d services are healthy:\n%s", healthy, len(services()), status)
		}
		return nil
	})
}

// runRedisCLI runs redis-cli with proxy-1 or proxy-2, and returns its output. The output is empty
// for nil.
func (p *project) runRedisCLI(proxy int, args ...string) (string, error) {
	reply, err := runCommand(p.ctx, p.env, append([]string{"redis-cli", "-p", portOf(p.addrs[proxy-1])}, args...)...)
	return strings.TrimSpace(reply), err
}

// mustRunRedisCLI calls runRedisCLI, and fails the test if the proxy is not available.
func (p *project) mustRunRedisCLI(t *testing.T, proxy int, args ...string) string {
	t.Helper()
	reply, err := p.runRedisCLI(proxy, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, reply)
	}
	return reply
}

// lock returns an error unless the client me is granted a lock of ten minutes.
func (p *project) lock(proxy int, key string) error {
	reply, err := p.runRedisCLI(proxy, "LOCK", key, "me", "EX", "600")
	if err == nil {
		err = checkGranted(reply)
	}
	if err != nil {
		return fmt.Errorf("LOCK %s at proxy-%d: %w", key, proxy, err)
	}
	return nil
}

// checkGranted returns an error unless the reply is a validity.
func checkGranted(reply string) error {
	if validity, err := strconv.Atoi(reply); err != nil || validity <= 0 {
		return fmt.Errorf("got %q, want a validity in ms", reply)
	}
	return nil
}

// wantLock calls lock, and fails the test unless the lock is granted. It repeats the command if the
// machine is too busy.
func (p *project) wantLock(t *testing.T, proxy int, key string) {
	t.Helper()
	var err error
	waitFor(t, func() error {
		err = p.lock(proxy, key)
		return lateReplyError(fmt.Sprint(err))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lateReplyError returns an error if a reply says that the masters replied too late, as on a busy
// machine. The caller then repeats the command.
func lateReplyError(reply string) error {
	if strings.Contains(reply, "NOQUORUM") && (strings.Contains(reply, "no answer in time") ||
		kit.IsLateText(reply)) {
		return errors.New(reply)
	}
	return nil
}

// checkValue returns an error unless the Redis behind proxy-1 has a value.
func (p *project) checkValue(key, value string) error {
	if got, err := p.runRedisCLI(1, "GET", key); err != nil || got != value {
		return fmt.Errorf("GET %s: got %q, %v, want %s", key, got, err, value)
	}
	return nil
}

// waitFor waits until a condition returns nil. After waitLimit, it ends the test.
func waitFor(t *testing.T, condition func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = condition(); err == nil {
			return
		}
	}
	t.Fatalf("not within %v (waitLimit in integration/compose/project_test.go): %v", waitLimit, err)
}
