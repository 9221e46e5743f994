package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// runningConfig returns a configuration with a login in each URL.
func runningConfig() Config {
	c := Default()
	c.Masters = []string{"redis://:old@a", "redis://:old@b", "redis://:old@c"}
	c.Upstream, c.ShareUpstreamLogin = "redis://app:old@up/3", true
	return c
}

// TestMergeReload checks that MergeReload applies a change at once if it can, and lists the change
// as pending otherwise. If the combination is invalid, nothing changes. The result shows no
// password.
func TestMergeReload(t *testing.T) {
	for _, test := range []struct {
		name             string
		change           func(*Config)
		changed, pending string
		err              string
	}{
		{"nothing", func(*Config) {}, "", "", ""},
		{"at once", func(c *Config) { c.MaxTTL, c.LogLevel = time.Hour, "debug" },
			`max-ttl: "24h" -> "1h"; log-level: "info" -> "debug"`, "", ""},
		{"at a restart", func(c *Config) { c.Listen, c.LockKeys = "a:1", []string{"lock:*", "x"} }, "",
			`listen: "127.0.0.1:6380" -> "a:1"; lock-keys: [] -> ["lock:*" "x"]`, ""},
		{"both", func(c *Config) { c.KeyPrefix, c.AuditLog = "p:", true }, `audit-log: "false" -> "true"`,
			`key-prefix: "" -> "p:"`, ""},
		{"passwords", func(c *Config) {
			c.Masters = []string{"redis://:old@a", "redis://:new@b", "redis://:new@c"}
			c.Upstream = "redis://app:new%40@up/3"
		}, "master: changed; upstream: changed", "", ""},
		{"a master more", func(c *Config) { c.Masters = append(c.Masters, "redis://:new@d") },
			`master: ["redis://:xxxxx@a" "redis://:xxxxx@b" "redis://:xxxxx@c"] -> ["redis://:xxxxx@a" ` +
				`"redis://:xxxxx@b" "redis://:xxxxx@c" "redis://:xxxxx@d"]`, "", ""},
		{"another master with another password", func(c *Config) { c.Masters[2] = "redis://:new@d" },
			`master: ["redis://:xxxxx@a" "redis://:xxxxx@b" "redis://:xxxxx@c"] -> ["redis://:xxxxx@a" "redis://:xxxxx@b" "redis://:xxxxx@d"]`, "", ""},
		{"another user at a master", func(c *Config) { c.Masters[2] = "redis://u:old@c" }, "",
			`master: ["redis://:xxxxx@a" "redis://:xxxxx@b" "redis://:xxxxx@c"] -> ["redis://:xxxxx@a" "redis://:xxxxx@b" "redis://u:xxxxx@c"]`, ""},
		{"another user", func(c *Config) { c.Upstream = "redis://root:old@up/3" }, "",
			`upstream: "redis://app:xxxxx@up/3" -> "redis://root:xxxxx@up/3"`, ""},
		{"another database", func(c *Config) { c.Upstream = "redis://app:new@up/4" }, "",
			`upstream: "redis://app:xxxxx@up/3" -> "redis://app:xxxxx@up/4"`, ""},
		{"a login taken out", func(c *Config) { c.Upstream = "redis://up/3" }, "",
			`upstream: "redis://app:xxxxx@up/3" -> "redis://up/3"`, ""},
		{"a user without a password", func(c *Config) { c.Upstream = "redis://app:@up/3" }, "", `upstream: changed`, ""},
		{"TLS to the upstream", func(c *Config) { c.Upstream = "rediss://app:new@up/3" }, "",
			`upstream: "redis://app:xxxxx@up/3" -> "rediss://app:xxxxx@up/3"`, ""},
		{"settings that conflict", func(c *Config) {
			c.MasterTimeout, c.MaxTTL = 10*time.Millisecond,
				100*time.Millisecond
		}, "", "",
			`settings that change at once conflict with settings that change only at a restart (master-timeout): ` +
				`master-timeout: "250ms" is not shorter than max-ttl "100ms"`},
		{"a login that every client would use", func(c *Config) {
			c.Upstream, c.ShareUpstreamLogin = "redis://up",
				false
		}, "", "",
			`settings that change at once conflict with settings that change only at a restart (upstream): upstream: "redis://app:xxxxx@up/3" has a login`},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := runningConfig()
			test.change(&next)
			now, changed, pending, err := runningConfig().MergeReload(next)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.HasPrefix(err.Error(), test.err)) {
				t.Fatalf("got the error %v, want %q", err, test.err)
			}
			if got := changeList(changed); got != test.changed {
				t.Errorf("changed: got %s, want %s", got, test.changed)
			}
			if got := changeList(pending); got != test.pending {
				t.Errorf("pending: got %s, want %s", got, test.pending)
			}
			if wrong := findWrongSetting(now, next, len(changed) > 0 && len(pending) == 0); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// TestReloadOfIncompleteFile checks files that end early. A reload fails if the file no longer
// names the settings of TLS, but turns off TLS if the file sets them to "". The reload also fails
// if the client password is missing.
func TestReloadOfIncompleteFile(t *testing.T) {
	load := func(text string) Config {
		file := filepath.Join(t.TempDir(), "conf.yaml")
		if err := os.WriteFile(file, []byte("master: [redis://a, redis://b, redis://c]\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Source{File: file})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const tls, password = "tls-cert: c\ntls-key: k\ntls-client-ca: ca\n", "client-password-file: p\nupstream: redis://:pw@up\n"
	running := load(tls + password)
	for text, want := range map[string]string{
		"tls-cert: c\ntls-key: k\n" + password: "tls-client-ca: no longer in the configuration",
		"tls-client-ca: \"\"\n" + password:     "tls-cert: no longer in the configuration",
		"":                                     "tls-cert: no longer in the configuration",
		tls:                                    "settings that change at once conflict with settings that change only at a restart (upstream)",
		"tls-cert: \"\"\ntls-key: \"\"\ntls-client-ca: \"\"\n" + password: "",
		"tls-cert: d\ntls-key: k\ntls-client-ca: ca\n" + password:         "",
	} {
		_, _, _, err := running.MergeReload(load(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func changeList(all []Change) string {
	var texts []string
	for _, c := range all {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, "; ")
}

// findWrongSetting describes a setting with the wrong value after a reload; empty if there is none.
// If all is set, every setting should be new; otherwise the settings that need a restart should be
// old.
func findWrongSetting(config, next Config, all bool) string {
	for _, s := range settingsTable {
		want := s.get(runningConfig())
		if all {
			want = s.get(next)
		}
		if (all || s.Reload == AtRestart) && fmt.Sprint(s.get(config)) != fmt.Sprint(want) {
			return s.Name + " is not what it should be"
		}
	}
	return ""
}

// TestMarkedRestarts checks that conf.example.yaml and docs/settings.md mark the settings that need
// a restart.
func TestMarkedRestarts(t *testing.T) {
	example, page := fileText(t, "../conf.example.yaml"), fileText(t, "../docs/settings.md")
	for _, s := range Settings() {
		above := regexp.MustCompile(`(?m)((?:^#.*\n)+)` + s.Name + `:`).FindString(example)
		row := regexp.MustCompile("(?m)^\\| `" + s.Name + "` \\|.*$").FindString(page)
		for document, text := range map[string]string{
			"conf.example.yaml": regexp.MustCompile(`\[restart[^\]]*\]`).FindString(above),
			"docs/settings.md":  strings.ReplaceAll(regexp.MustCompile(`\(\*restart\*[^)]*\) \|$`).FindString(row), "*", ""),
		} {
			text = strings.Trim(text, "[]() |.")
			if want := map[ReloadMode]string{AtOnce: "", AtRestart: "restart",
				PasswordAtOnce: "restart, but for a new password",
				MastersAtOnce:  "restart, but for a new password and other servers"}[s.Reload]; text != want {
				t.Errorf("%s marks %s %q, want %q", document, s.Name, text, want)
			}
		}
	}
}
