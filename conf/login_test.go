package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// splitACL returns the file name after "acl:" as acl. It returns a name without that prefix as
// passwordFile.
func splitACL(name string) (acl, passwordFile string) {
	if file, ok := strings.CutPrefix(name, "acl:"); ok {
		return file, ""
	}
	return "", name
}

// TestUpstreamLogin checks that clients share the upstream's login only if the configuration allows
// it.
func TestUpstreamLogin(t *testing.T) {
	const noLoginURL, login, user = "redis://r:1", "redis://:hunter2@r:1", "redis://alice@r:1"
	for _, c := range []struct {
		upstream, file string
		share          bool
		want           string
	}{
		{"", "", false, ""},
		{noLoginURL, "", false, ""},
		{noLoginURL, "", true, ""},
		{login, "", true, ""},
		{login, "p", false, ""},
		{login, "", false, `upstream: "redis://:xxxxx@r:1" has a login, which every client`},
		{user, "", false, `upstream: "redis://xxxxx@r:1" has a login`},
		{noLoginURL, "p", false, "client-password-file: has no effect"},
		{"", "p", false, "client-password-file: has no effect"},
		{login, "p", true, "share-upstream-login: cannot be combined with client-password-file"},
		{login, "acl:u", false, ""},
		{noLoginURL, "acl:u", false, ""},
		{"", "acl:u", false, ""},
		{login, "acl:p", false, "acl-file: cannot be combined with client-password-file"},
		{login, "acl:u", true, "share-upstream-login: cannot be combined with acl-file"},
	} {
		cfg := Default()
		cfg.Masters = []string{"redis://a:1", "redis://b:1", "redis://c:1"}
		if cfg.ACLFile, c.file = splitACL(c.file); cfg.ACLFile == "p" {
			c.file = "p"
		}
		cfg.Upstream, cfg.ClientPasswordFile, cfg.ShareUpstreamLogin = c.upstream, c.file, c.share
		err := cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the password is shown: %v", err)
		}
		warned := strings.Contains(strings.Join(cfg.Warnings(), "\n"), "share-upstream-login")
		if warned != (c.share && cfg.LogsInToUpstream()) {
			t.Errorf("%+v: warned: %v", c, warned)
		}
	}
}

func TestClientPassword(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	for content, want := range map[string]string{
		"s3cret\n": "s3cret", "s3cret": "s3cret", " a b \r\n": " a b ", "": "!is empty", "\n": "!is empty",
		"a\nb\n": "!more than one line", strings.Repeat("x", 513): "!more than 512 bytes",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Config{ClientPasswordFile: path}.ClientPassword()
		failure, fails := strings.CutPrefix(want, "!")
		if fails && (err == nil || !strings.Contains(err.Error(), failure)) || !fails && (err != nil || got != want) {
			t.Errorf("%q: %q, %v", content, got, err)
		}
	}
	if _, err := (Config{ClientPasswordFile: path + "x"}).ClientPassword(); err == nil {
		t.Error("a file that is not there was read")
	}
	if got, err := (Config{}).ClientPassword(); got != "" || err != nil {
		t.Errorf("no file: %q, %v", got, err)
	}
}
