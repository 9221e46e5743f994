//go:build integration

package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testTLS starts the deployment with TLS, with new secrets.
func testTLS(t *testing.T, e engine, image string) {
	t.Parallel()
	secrets := t.TempDir()
	t.Log(e.run(t, nil, "deploy/compose/make-secrets", secrets))
	p := e.newProject(t, image, "tls", "deploy/compose/tls.yml").useFreePorts(t)
	p.env = append(p.env, "SECRETS="+secrets)
	p.runCompose(t, "up", "--detach")
	p.awaitHealthy(t)
	p.wantSafeMasters(t)

	needTerminal(t, e)
	typed := strings.NewReplacer("deploy/compose/secrets", secrets, "-p 6380", "-p "+portOf(p.addrs[0]))
	for _, line := range pageCommands(t, "docs/deploy.md", "## With Docker Compose") {
		p.runInTerminal(t, typed.Replace(line.command), line)
	}
	wantParts(t, "LOCK without a login", p.mustRunRedisCLI(t, 1, "LOCK", "key", "me", "EX", "600"), "NOAUTH")
	wantParts(t, "GET without a login", p.mustRunRedisCLI(t, 1, "GET", "key"), "NOAUTH")
	p.env = append(p.env, "REDISCLI_AUTH="+readSecret(t, secrets, "redis_password"))
	p.wantLock(t, 1, "key")
	p.mustRunRedisCLI(t, 2, "SET", "greeting", "hello")
	if err := p.checkValue("greeting", "hello"); err != nil {
		t.Error(err)
	}
	p.wantServersProtected(t)
	p.wantPasswordsHidden(t, readSecret(t, secrets, "redis_password"), readSecret(t, secrets, "masters_password"))
}

func readSecret(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// wantServersProtected fails the test unless every Redis refuses clients without TLS or password.
func (p *project) wantServersProtected(t *testing.T) {
	t.Helper()
	for _, service := range services() {
		if strings.HasPrefix(service, "proxy-") {
			continue
		}
		if output, err := p.execIn(service, "redis-cli", "-e", "ping"); err == nil {
			t.Errorf("%s without TLS: got success and %q", service, output)
		}
		output, _ := p.execIn(service, "redis-cli", "--tls", "--cacert", "/run/secrets/ca.crt", "ping")
		wantParts(t, service+" without a password", output, "NOAUTH")
	}
}

// wantPasswordsHidden checks that other users of the machine cannot see the passwords.
func (p *project) wantPasswordsHidden(t *testing.T, passwords ...string) {
	t.Helper()
	seen := p.runCompose(t, "logs", "--no-color") + p.runCompose(t, "top")
	for _, id := range p.containers(t) {
		seen += p.runDocker(t, "inspect", id)
	}
	for i, password := range passwords {
		if strings.Contains(seen, password) {
			t.Errorf("password %d is in the logs, the arguments or the environment of a container", i)
		}
	}
}
