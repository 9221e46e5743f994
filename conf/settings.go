package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// EnvPrefix begins the name of every environment variable of the proxy.
	EnvPrefix = "REDLOCK_"
	// FileFlag is the name of the flag that names the configuration file. It is no setting: a file
	// cannot hold it.
	FileFlag = "config"
	// FileEnv is the environment variable that names the configuration file where the flag does
	// not.
	FileEnv = "REDLOCK_CONFIG"
)

// Setting is one row of the table from which flags, environment names and YAML keys are made.
type Setting struct {
	// Name is the kebab-case name: the flag without its dashes, and the YAML key.
	Name string
	// Usage says what the setting is, with its unit, after what stands for its value: "`DURATION`:
	// …".
	Usage string
	// Default is the value where none is given, written as a user would write it. Empty for a
	// repeated setting.
	Default string
	// Repeated settings take several values: a repeated flag, a YAML list, or a variable with white
	// space between them.
	Repeated bool
	// Toggle settings are true or false: a flag without a value says true.
	Toggle bool
	// Reload is what becomes of it when the configuration is read again while the proxy runs.
	Reload Reload

	secret bool                           // values may carry a password
	text   bool                           // in YAML the value is a string, not a number or a boolean
	set    func(*Config, []string) error  // parses, checks and stores values; errors do not contain the values
	get    func(Config) (values []string) // the inverse of set
	copy   func(to *Config, from Config)  // takes the value over
}

// Env returns the name of the setting's environment variable, such as REDLOCK_MAX_TTL.
func (s Setting) Env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Settings returns the table of all settings, in the order in which help should list them. The
// slice is the caller's.
func Settings() []Setting { return slices.Clone(table) }

// table is never changed. A row names the setting, says what it is, and gives its kind, its field
// and its rules.
var table = []Setting{
	reloads(OtherAtOnce, private(many("master", "`URL`: one independent Redis master (redis://, rediss:// or unix://); once per master",
		func(c *Config) *[]string { return &c.Masters }, masterURL))),
	reloads(PasswordAtOnce, private(one("upstream", "`URL`: your Redis, which gets every command that is not the proxy's own (redis://, rediss://, unix://, or redis+sentinel:// with the Sentinels that know it); without it the proxy is a lock server",
		text, func(c *Config) *string { return &c.Upstream }, upstreamURL))),
	atOnce(one("upstream-timeout", "`DURATION`: time limit for connecting to the upstream, and for its answers to the proxy's own questions",
		duration, func(c *Config) *time.Duration { return &c.UpstreamTimeout }, moreThan(time.Duration(0)))),
	atOnce(one("ca", "`FILE`: PEM file with the certificate authorities of rediss:// servers, in addition to the system's",
		text, func(c *Config) *string { return &c.CA })),
	atOnce(one("client-cert", "`FILE`: PEM file with the certificate that the proxy presents to rediss:// servers",
		text, func(c *Config) *string { return &c.ClientCert })),
	atOnce(one("client-key", "`FILE`: PEM file with the key of client-cert",
		text, func(c *Config) *string { return &c.ClientKey })),
	atOnce(one("client-password-file", "`FILE`: file with the password that clients must log in with if the upstream's URL contains a login",
		text, func(c *Config) *string { return &c.ClientPasswordFile })),
	atOnce(switched(one("share-upstream-login", "let every client use the login in the upstream's URL without a login of its own",
		toggle, func(c *Config) *bool { return &c.ShareUpstreamLogin }))),
	one("acl-file", "`FILE`: file with the proxy's own users, in the format of Redis' ACL file: clients log in at the proxy, not at the upstream",
		text, func(c *Config) *string { return &c.ACLFile }),
	one("listen", "`ADDR`: address (host:port) for clients; port 0 lets the system choose",
		text, func(c *Config) *string { return &c.Listen }, hostPort),
	atOnce(one("tls-cert", "`FILE`: PEM file with the certificate chain that the proxy presents to clients, which must then speak TLS",
		text, func(c *Config) *string { return &c.TLSCert })),
	atOnce(one("tls-key", "`FILE`: PEM file with the key of tls-cert",
		text, func(c *Config) *string { return &c.TLSKey })),
	atOnce(one("tls-client-ca", "`FILE`: PEM file with the certificate authorities of clients: a client without such a certificate is refused",
		text, func(c *Config) *string { return &c.TLSClientCA })),
	atOnce(switched(one("protected-mode", "refuse clients from other machines if no login is required",
		toggle, func(c *Config) *bool { return &c.ProtectedMode }))),
	some("proxy-protocol", "`ADDR`: address or network (10.0.0.0/8) of load balancers, which must name their client by the PROXY protocol, version 1 or 2; once per network",
		func(c *Config) *[]string { return &c.ProxyProtocol }, network),
	one("admin", "`ADDR`: address (host:port) of the admin port, which serves a status page, health and metrics by HTTP to every client; empty: none",
		text, func(c *Config) *string { return &c.Admin }, orEmpty(hostPort)),
	some("admin-names", "`NAME`: host name with a dot at which the admin port answers, in addition to the name of the machine; once per name",
		func(c *Config) *[]string { return &c.AdminNames }),
	atOnce(switched(one("admin-pprof", "serve profiles of the process at the admin port (/debug/pprof/)",
		toggle, func(c *Config) *bool { return &c.AdminPprof }))),
	switched(one("admin-locks", "show the held locks on the status page, with their keys and clients",
		toggle, func(c *Config) *bool { return &c.AdminLocks })),
	atOnce(one("max-ttl", "`DURATION`: longest TTL that a client may ask for; also the wait after all masters lost their data, if no proxy knows the TTLs in use",
		duration, func(c *Config) *time.Duration { return &c.MaxTTL }, atLeast(time.Millisecond))),
	one("master-timeout", "`DURATION`: time limit for a master's answer; a master that does not answer in time has no vote",
		duration, func(c *Config) *time.Duration { return &c.MasterTimeout }, moreThan(time.Duration(0))),
	switched(one("guard", "withhold the vote of a master that may have lost locks until it has caught up; false is for comparisons only",
		toggle, func(c *Config) *bool { return &c.Guard })),
	switched(one("fresh-start", "let masters that are all empty when the proxy starts vote after 3 s",
		toggle, func(c *Config) *bool { return &c.FreshStart })),
	one("key-prefix", "`TEXT`: text before each lock's name in its key on the masters",
		text, func(c *Config) *string { return &c.KeyPrefix }),
	some("lock-keys", "`GLOB`: pattern of keys, as in KEYS, on which ordinary commands and scripts run on the masters; once per pattern",
		func(c *Config) *[]string { return &c.LockKeys }, lockGlob),
	some("lock-tags", "`GLOB`: pattern of lock keys with a hash tag ({…}) that are kept together by tag, so that one command or script can change several; once per pattern",
		func(c *Config) *[]string { return &c.LockTags }, lockGlob),
	switched(one("move-from-upstream", "keep the locks at the upstream until 'redlock-proxy move' moves them to the masters; no effect after that",
		toggle, func(c *Config) *bool { return &c.MoveFromUpstream })),
	atOnce(one("no-ttl", "`POLICY`: lock keys without a TTL: allow or refuse",
		text, func(c *Config) *string { return &c.NoTTL }, oneOf("allow", "refuse"))),
	one("cluster-mode", "`MODE`: off, or emulated: a proxy without an upstream tells cluster clients that it is a cluster of one node",
		text, func(c *Config) *string { return &c.ClusterMode }, oneOf("off", "emulated")),
	atOnce(one("max-clients", "`NUMBER`: limit of connected clients",
		number, func(c *Config) *int { return &c.MaxClients }, atLeast(1))),
	atOnce(one("max-input-memory", "`SIZE`: memory limit for incomplete commands of all clients and what is kept for them between commands (256mb); a client that would exceed it is disconnected",
		size, func(c *Config) *int64 { return &c.MaxInputMemory }, leastSize)),
	atOnce(one("max-unread-memory", "`SIZE`: memory limit for unread replies of all clients; the client that has left some unread for longest is disconnected",
		size, func(c *Config) *int64 { return &c.MaxUnreadMemory }, leastSize)),
	atOnce(one("max-message-memory", "`SIZE`: memory limit for messages to subscribers of a proxy without an upstream; the subscriber for which most wait is disconnected",
		size, func(c *Config) *int64 { return &c.MaxMessageMemory }, leastSize)),
	atOnce(one("drain-timeout", "`DURATION`: time limit for commands that still run when the proxy stops",
		duration, func(c *Config) *time.Duration { return &c.DrainTimeout }, atLeast(time.Duration(0)))),
	atOnce(one("drain-delay", "`DURATION`: time for which a stopping proxy still accepts clients, but is not ready, before it drains",
		duration, func(c *Config) *time.Duration { return &c.DrainDelay }, atLeast(time.Duration(0)))),
	atOnce(switched(one("audit-log", "log each grant and release of a lock, with key and client",
		toggle, func(c *Config) *bool { return &c.AuditLog }))),
	atOnce(one("log-level", "`LEVEL`: least severe level that is logged: debug, info, warn or error",
		text, func(c *Config) *string { return &c.LogLevel }, oneOf("debug", "info", "warn", "error"))),
	atOnce(one("log-format", "`FORMAT`: format of log lines: text or json",
		text, func(c *Config) *string { return &c.LogFormat }, oneOf("text", "json"))),
}

// one makes the row of a setting with one value.
func one[T any](name, usage string, k kind[T], field func(*Config) *T, rules ...func(T) error) Setting {
	set := func(c *Config, values []string) error {
		if len(values) != 1 {
			return fmt.Errorf("takes one value, not %d", len(values))
		}
		v, err := k.parse(values[0])
		if err == nil {
			err = firstError(v, rules)
		}
		if err == nil {
			*field(c) = v
		}
		return err
	}
	get := func(c Config) []string { return []string{k.format(*field(&c))} }
	take := func(to *Config, from Config) { *field(to) = *field(&from) }
	return Setting{Name: name, Usage: usage, Default: get(Default())[0], text: k.text, set: set, get: get, copy: take}
}

// many makes the row of a setting that is repeated.
func many(name, usage string, field func(*Config) *[]string, rules ...func(string) error) Setting {
	s := some(name, usage, field, rules...)
	set := s.set
	s.set = func(c *Config, values []string) error {
		if len(values) == 0 {
			return errors.New("is given without a value")
		}
		return set(c, values)
	}
	return s
}

// some is many for a setting that may also have no value at all.
func some(name, usage string, field func(*Config) *[]string, rules ...func(string) error) Setting {
	set := func(c *Config, values []string) error {
		for _, v := range values {
			if err := firstError(v, rules); err != nil {
				return err
			}
		}
		*field(c) = values
		return nil
	}
	get := func(c Config) []string { return *field(&c) }
	take := func(to *Config, from Config) { *field(to) = *field(&from) }
	return Setting{Name: name, Usage: usage, Repeated: true, text: true, set: set, get: get, copy: take}
}

// switched marks a row that is on or off.
func switched(s Setting) Setting {
	s.Toggle = true
	return s
}

// reloads marks a row by what becomes of it when the configuration is read again.
func reloads(how Reload, s Setting) Setting {
	s.Reload = how
	return s
}

func atOnce(s Setting) Setting { return reloads(AtOnce, s) }

// private marks a row whose values are URLs that may carry passwords.
func private(s Setting) Setting {
	s.secret = true
	return s
}

// check says what is wrong with one value of s.
func (s Setting) check(value string) error { return s.set(new(Config), []string{value}) }

// shown returns the value as an error or a log may show it.
func (s Setting) shown(value string) string {
	if s.secret {
		return Redact(value)
	}
	return guarded(value)
}

// byName returns the setting of that name.
func byName(name string) (Setting, bool) {
	i := slices.IndexFunc(table, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return table[i], true
}

func settingNames() []string {
	names := make([]string, len(table))
	for i, s := range table {
		names[i] = s.Name
	}
	return names
}

func firstError[T any](v T, rules []func(T) error) error {
	for _, rule := range rules {
		if err := rule(v); err != nil {
			return err
		}
	}
	return nil
}
