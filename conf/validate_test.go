package conf

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// validConfig returns a configuration without faults or warnings.
func validConfig() Config {
	c := Default()
	c.Masters = []string{"redis://:hunter2@a", "redis://b", "redis://c"}
	return c
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"nothing", func(*Config) {}, nil},
		{"no master", func(c *Config) { c.Masters = nil }, []string{`master: no master is given`}},
		{"a bad master", func(c *Config) { c.Masters[0] = "redis://:hunter2@a/0" },
			[]string{`master: "redis://:xxxxx@a/0" names a database`}},
		{"a master twice", func(c *Config) { c.Masters[2] = "redis://A:6379" },
			[]string{`master: "redis://A:6379" is the same master as "redis://:xxxxx@a"`}},
		{"an upstream that is a master", func(c *Config) { c.Upstream = "redis://A:6379/3" },
			[]string{`upstream: "redis://A:6379/3" is a master, too: clients would change locks past the proxy`}},
		{"listen", func(c *Config) { c.Listen = "6380" }, []string{`listen: "6380" is not host:port`}},
		{"listen port", func(c *Config) { c.Listen = "h:65536" }, []string{`listen: "h:65536" has no port number`}},
		{"listen port name", func(c *Config) { c.Listen = "h:redis" }, []string{`listen: "h:redis" has no port number`}},
		{"listen anywhere", func(c *Config) { c.Listen = ":0" }, nil},
		{"no admin port", func(c *Config) { c.Admin = "" }, nil},
		{"an admin port", func(c *Config) { c.Admin, c.AdminPprof = "[::1]:9380", true }, nil},
		{"a bad admin port", func(c *Config) { c.Admin = "9380" }, []string{`admin: "9380" is not host:port`}},
		{"shortest TTL", func(c *Config) { c.MaxTTL, c.MasterTimeout = time.Millisecond, time.Microsecond }, nil},
		{"TTL too short", func(c *Config) { c.MaxTTL, c.MasterTimeout = time.Millisecond-1, 1 },
			[]string{`max-ttl: "999.999µs" is less than 1ms`}},
		{"longest TTL", func(c *Config) { c.MaxTTL = 1<<63 - 1 }, nil},
		{"no timeout", func(c *Config) { c.MasterTimeout = 0 }, []string{`master-timeout: "0s" is not more than 0s`}},
		{"timeout as long as the TTL", func(c *Config) { c.MasterTimeout = c.MaxTTL },
			[]string{`master-timeout: "24h" is not shorter than max-ttl "24h"`}},
		{"lock keys", func(c *Config) { c.LockKeys = []string{"lock:*", "?[a-z]"} }, nil},
		{"lock classes", func(c *Config) { c.Admin, c.LockClass = ":0", []string{"a=a:*", "b.B-_9=x=[^=]", "a=c"} }, nil},
		{"an empty lock key", func(c *Config) { c.LockKeys = []string{"lock:*", ""} }, []string{`lock-keys: "" is empty`}},
		{"cluster of another kind", func(c *Config) { c.ClusterMode = "on" },
			[]string{`cluster-mode: "on" is not one of off, emulated`}},
		{"cluster with an upstream", func(c *Config) { c.ClusterMode, c.Upstream = "emulated", "redis://u" },
			[]string{`cluster-mode: "emulated" needs a proxy without an upstream`}},
		{"no TTL", func(c *Config) { c.LocksWithoutTTL = "maybe" },
			[]string{`locks-without-ttl: "maybe" is not one of allow, refuse`}},
		{"TLS", func(c *Config) { c.TLSCert, c.TLSKey, c.TLSClientCA = "c", "k", "a" }, nil},
		{"halves of TLS", func(c *Config) { c.TLSCert, c.ClientKey = "c", "k" },
			[]string{`tls-cert: "c" is given without tls-key`, `client-key: "k" is given without client-cert`}},
		{"other halves of TLS", func(c *Config) { c.TLSKey, c.ClientCert, c.TLSClientCA = "k", "c", "a" },
			[]string{`tls-key: "k" is given without tls-cert`, `tls-client-ca: "a" is given without tls-cert`,
				`client-cert: "c" is given without client-key`}},
		{"no drain", func(c *Config) { c.DrainTimeout = 0 }, nil},
		{"negative delay", func(c *Config) { c.DrainDelay = -time.Second }, []string{`drain-delay: "-1s" is less than 0s`}},
		{"negative drain", func(c *Config) { c.DrainTimeout = -time.Second },
			[]string{`drain-timeout: "-1s" is less than 0s`}},
		{"little memory", func(c *Config) { c.MaxUnreadMemory = 3 << 20 },
			[]string{`max-unread-memory: "3mb" is less than 4mb`}},
		{"no clients", func(c *Config) { c.MaxClients = 0 }, []string{`max-clients: "0" is less than 1`}},
		{"log", func(c *Config) { c.LogLevel, c.LogFormat = "INFO", "" },
			[]string{`log-level: "INFO" is not one of`, `log-format: "" is not one of`}},
		{"the zero value", func(c *Config) { *c = Config{} },
			[]string{`upstream-timeout: "0s" is`, `listen: "" is`, `cluster-ports: "" is`, `max-ttl: "0s" is`, `master-timeout: "0s" is`,
				`locks-without-ttl: "" is`, `cluster-mode: "" is`, `max-clients: "0" is`,
				`max-input-memory: "0" is`, `max-unread-memory: "0" is`, `max-message-memory: "0" is`,
				`log-level: "" is`, `log-format: "" is`, `master: no master is given`,
				`master-timeout: "0s" is not shorter than max-ttl "0s"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := validConfig()
			test.change(&c)
			if err := c.Validate(); !matches(err, test.want) {
				t.Fatalf("got\n%v\nwant\n%s", err, strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		masters int
		want    []string
	}{
		{0, nil}, // an error, not a warning
		{1, []string{"masters: only 1 master: no failure is tolerated; use 3 or 5"}},
		{2, []string{"masters: 2 masters tolerate no more failures than 1; use 3 or 5"}},
		{3, nil},
		{4, []string{"masters: 4 masters tolerate no more failures than 3; use 3 or 5"}},
		{5, nil},
	}
	for _, test := range tests {
		c := Config{Masters: make([]string, test.masters)}
		if got := c.Warnings(); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%d masters: got %q, want %q", test.masters, got, test.want)
		}
	}
}

func TestWarningOfTooManyLockKeys(t *testing.T) {
	for glob, want := range map[string]int{"*": 1, "**": 1, "lock:*": 0, "?*": 0} {
		c := validConfig()
		c.LockKeys = []string{glob}
		if got := c.Warnings(); len(got) != want {
			t.Errorf("%s: %q", glob, got)
		}
	}
}

func TestWarningOfAdminSettings(t *testing.T) {
	c := validConfig()
	c.AdminPprof, c.AdminLocks = true, true
	want := []string{"admin-pprof: has no effect without admin, the address of the port that serves profiles",
		"admin-locks: has no effect without admin, the address of the port that shows locks"}
	if got := c.Warnings(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	c.Admin = ":0"
	if got := c.Warnings(); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}
