package conf

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRedact(t *testing.T) {
	tests := []struct{ url, want string }{
		// nothing to hide
		{"", ""},
		{"redis://host:6379", "redis://host:6379"},
		{"redis://host/3", "redis://host/3"},
		{"redis://[::1]:6379", "redis://[::1]:6379"},
		{"rediss://host?skip_verify=true", "rediss://host?skip_verify=true"},
		{"redis://host?db=3", "redis://host?db=3"},
		{"unix:///run/redis.sock", "unix:///run/redis.sock"},
		{"host:6379", "host:6379"},
		{"${URL}", "${URL}"},
		// ordinary cases
		{"redis://:hunter2@host:6379", "redis://:xxxxx@host:6379"},
		{"redis://user:hunter2@host/3", "redis://user:xxxxx@host/3"},
		{"unix://:hunter2@/run/redis.sock", "unix://:xxxxx@/run/redis.sock"},
		// some clients use a name alone as the password
		{"redis://hunter2@host", "redis://xxxxx@host"},
		// passwords outside of a valid URL
		{"redis://:hunter2@hunter2@host", "redis://:xxxxx@host"},
		{"redis://:hun/hunter2@host", "redis://:xxxxx@host"},
		{"redis://:hun#hunter2@host", "redis://:xxxxx@host"},
		{"redis://:hun%hunter2@host", "redis://:xxxxx@host"},
		{"redis://:hun?hunter2@host", "redis://xxxxx"},
		{"redis://:hun://hunter2@host", "redis://:xxxxx@host"},
		{"redis://:hunter2 @host", "redis://:xxxxx@host"},
		// not a URL
		{":hunter2@host", ":xxxxx@host"},
		{"hunter2@host", "xxxxx@host"},
		{"redis:hunter2@host", "redis:xxxxx@host"},
		{"redis://user:hunter2", "redis://user:xxxxx"},
		{"redis://user:12#hunter2", "redis://user:xxxxx"},
		{"redis://user:12/hunter2", "redis://user:xxxxx"},
		// Redact shows a bad port if it cannot be a password
		{"redis://[::1]:63x79", "redis://[::1]:63x79"},
		{"redis://127.0.0.1:637900", "redis://127.0.0.1:637900"},
		{"redis://localhost:abc", "redis://localhost:abc"},
		{"redis://redis-1:63x79", "redis://redis-1:xxxxx"},
		{"redis://[::1:hunter2", "redis://[:xxxxx"},
		// parameters
		{"redis://host?password=hunter2", "redis://host?xxxxx"},
		{"redis://host?password=a@hunter2", "redis://xxxxx"},
		{"redis://:hunter2@host?db=3", "redis://:xxxxx@host?db=3"},
		{"redis://:hunter2@host?db=3&p=hunter2", "redis://:xxxxx@host?xxxxx"},
		// Sentinels
		{"redis+sentinel://s1:26379,s2:26379/mymaster/2", "redis+sentinel://s1:26379,s2:26379/mymaster/2"},
		{"redis+sentinel://:hunter2@s1:26379,s2:26379/mymaster", "redis+sentinel://:xxxxx@s1:26379,s2:26379/mymaster"},
		{"redis+sentinel://u:hunter2@s1,s2/mymaster?sentinel_password=hunter2",
			"redis+sentinel://u:xxxxx@s1,s2/mymaster?xxxxx"},
		{"rediss+sentinel://s1,s2/mymaster?sentinel_username=hunter2", "rediss+sentinel://s1,s2/mymaster?xxxxx"},
		{"redis+sentinel://user:12/hunter2", "redis+sentinel://user:xxxxx"},
		{"redis://user:12,a:1/hunter2", "redis://user:xxxxx"},
		// several URLs in one text
		{"redis://:hunter2@a,redis://:hunter2@b", "redis://:xxxxx@b"},
	}
	for _, test := range tests {
		if got := Redact(test.url); got != test.want {
			t.Errorf("Redact(%q) = %q, want %q", test.url, got, test.want)
		}
	}
}

// TestRedactAnyPassword puts passwords with any characters into URLs, escaped and raw.
func TestRedactAnyPassword(t *testing.T) {
	forms := []string{"redis://:%s@h", "rediss://u:%s@h:1", "unix://:%s@/h", "u:%s@h", "redis://u:%s@h?db=1",
		"redis://u:%s@h/1", "redis://%s@h", "%s@h:1",
		"redis+sentinel://u:%s@a:1,b:2/m", "redis+sentinel://u:%s@a/m/1?skip_verify=true",
		"redis+sentinel://a:1,b:2/m?sentinel_password=%s",
		"redis+sentinel://u:%[1]s@a:1/m?sentinel_username=%[1]s&sentinel_password=%[1]s"}
	rapid.Check(t, func(t *rapid.T) {
		// the upper case X at both ends occurs nowhere else, so the test detects any visible part
		password := "X" + rapid.StringOf(rapid.RuneFrom([]rune("X@:/?#[]%$&=,;+ \"'\\\né1"))).Draw(t, "password") + "X"
		for _, form := range forms {
			for _, written := range []string{password, url.QueryEscape(password), url.PathEscape(password)} {
				if !strings.Contains(form, ":%") {
					// The text before a colon is the user.
					written = strings.ReplaceAll(written, ":", "")
				}
				if got := Redact(fmt.Sprintf(form, written)); strings.Contains(got, "X") {
					t.Fatalf("%q in %s is shown as %q", written, form, got)
				}
			}
		}
	})
}

// TestNoSecretInErrors loads URLs whose passwords have special characters from all sources, and
// through ${NAME}.
func TestNoSecretInErrors(t *testing.T) {
	// special characters make most of these invalid URLs; each error then shows the value
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringOf(rapid.RuneFrom([]rune("@:/?#%,12"))).Draw(t, "before") + secret +
			rapid.StringOf(rapid.RuneFrom([]rune("@:/?#%,12"))).Draw(t, "after")
		bad := "redis://:" + password + "@h/0"
		for _, src := range []Source{
			{Flags: map[string][]string{"master": {bad}}},
			{Flags: map[string][]string{"listen": {bad}, "max-ttl": {bad}, "log-level": {bad}, "max-clients": {bad}}},
			{Environ: []string{"REDLOCK_MASTER=" + bad, "REDLOCK_LISTEN=" + bad, "REDLOCK_MASTERS=" + bad}},
		} {
			if _, err := Load(src); err == nil || strings.Contains(err.Error(), secret) {
				t.Fatalf("the error shows the password: %v", err)
			}
		}
		for _, file := range []string{"master: ['%s']\n", "master: '%s'\n", "listen: '%s'\n", "'%s': 1\n",
			"masters: '%s'\n", "master: [%s\n", "%s\n", "%s:\n", "a: b: %s\n", "master:\n  %s\n", "%%TAG %s\n",
			"%%YAML %s\n---\na: b\n", "listen: ${%s}\n", "master: {'%s': 1}", "x: &%s\n", "listen: !%s a\n"} {
			r := readFile(fmt.Sprintf(file, bad))
			r.validate()
			if _, err := r.result(); err == nil || strings.Contains(err.Error(), secret) {
				t.Fatalf("%q: the error shows the password: %v", file, err)
			}
		}
	})
}
