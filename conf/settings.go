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
	// FileFlag is the name of the flag that names the configuration file. It is no setting: a file cannot hold it.
	FileFlag = "config"
	// FileEnv is the environment variable that names the configuration file where the flag does not.
	FileEnv = "REDLOCK_CONFIG"
)

// Setting is one row of the table from which flags, environment names and YAML keys are made.
type Setting struct {
	// Name is the kebab-case name: the flag without its dashes, and the YAML key.
	Name string
	// Usage says in one sentence what the setting is, with its unit.
	Usage string
	// Default is the value where none is given, written as a user would write it. Empty for a repeated setting.
	Default string
	// Repeated settings take several values: a repeated flag, a YAML list, or a variable with white space between them.
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

// Settings returns the table of all settings, in the order in which help should list them. The slice is the caller's.
func Settings() []Setting { return slices.Clone(table) }

// table is never changed. A row names the setting, says what it is, and gives its kind, its field and its rules.
var table = []Setting{
	reloads(OtherAtOnce, private(many("master", "`URL` of one independent Redis master (redis://, rediss:// or unix://); once per master",
		func(c *Config) *[]string { return &c.Masters }, masterURL))),
	reloads(PasswordAtOnce, private(one("upstream", "`URL` of the Redis that gets every command which is not the proxy's own (redis://, rediss://, unix://, or redis+sentinel:// with the Sentinels that know where it is); without it the proxy is a lock server",
		text, func(c *Config) *string { return &c.Upstream }, upstreamURL))),
	atOnce(one("upstream-timeout", "how long connecting to the upstream may take, and its answers to what the proxy asks itself, a `DURATION`",
		duration, func(c *Config) *time.Duration { return &c.UpstreamTimeout }, moreThan(time.Duration(0)))),
	atOnce(one("ca", "PEM `FILE` with certificates of the authorities that signed those of rediss:// servers, beside the system's",
		text, func(c *Config) *string { return &c.CA })),
	atOnce(one("client-cert", "PEM `FILE` with the certificate that the proxy shows rediss:// servers",
		text, func(c *Config) *string { return &c.ClientCert })),
	atOnce(one("client-key", "PEM `FILE` with the key of client-cert",
		text, func(c *Config) *string { return &c.ClientKey })),
	atOnce(one("client-password-file", "`FILE` with the password that clients must log in with, where the URL of the upstream has a login of its own",
		text, func(c *Config) *string { return &c.ClientPasswordFile })),
	atOnce(switched(one("share-upstream-login", "whether everybody who reaches the proxy may use the login in the URL of the upstream, without one of their own",
		toggle, func(c *Config) *bool { return &c.ShareUpstreamLogin }))),
	one("acl-file", "`FILE` with users of the proxy's own, in the form of Redis' ACL file: clients log in as one of them, here and not at the upstream",
		text, func(c *Config) *string { return &c.ACLFile }),
	one("listen", "`ADDR` (host:port) on which clients are served; port 0 lets the system choose",
		text, func(c *Config) *string { return &c.Listen }, hostPort),
	atOnce(one("tls-cert", "PEM `FILE` with the certificate, and those between it and its authority, that the proxy shows its clients: they then speak TLS",
		text, func(c *Config) *string { return &c.TLSCert })),
	atOnce(one("tls-key", "PEM `FILE` with the key of tls-cert",
		text, func(c *Config) *string { return &c.TLSKey })),
	atOnce(one("tls-client-ca", "PEM `FILE` with certificates of the authorities that signed those of clients: without such a certificate nobody is served",
		text, func(c *Config) *string { return &c.TLSClientCA })),
	atOnce(switched(one("protected-mode", "whether clients from other machines are turned away where nobody has to log in",
		toggle, func(c *Config) *bool { return &c.ProtectedMode }))),
	some("proxy-protocol", "`ADDR` or network (10.0.0.0/8) of load balancers that say by the PROXY protocol, version 1 or 2, for whom they connect, and must; once per network",
		func(c *Config) *[]string { return &c.ProxyProtocol }, network),
	one("admin", "`ADDR` (host:port) on which a status page, health and metrics are served by HTTP, to whoever reaches it; without it they are not",
		text, func(c *Config) *string { return &c.Admin }, orEmpty(hostPort)),
	some("admin-names", "`NAME` with a dot by which admin may be asked, beside the name of the machine: other sites are not answered; once per name",
		func(c *Config) *[]string { return &c.AdminNames }),
	atOnce(switched(one("admin-pprof", "whether admin also serves profiles of the process (/debug/pprof/)",
		toggle, func(c *Config) *bool { return &c.AdminPprof }))),
	switched(one("admin-locks", "whether the page at admin shows which locks are held, with their keys and clients",
		toggle, func(c *Config) *bool { return &c.AdminLocks })),
	atOnce(one("max-ttl", "longest TTL that a client may ask for, and how long to wait where all masters forgot and nobody knows the TTLs in use, a `DURATION`",
		duration, func(c *Config) *time.Duration { return &c.MaxTTL }, atLeast(time.Millisecond))),
	one("master-timeout", "how long one master may take to answer before it has no vote, a `DURATION`",
		duration, func(c *Config) *time.Duration { return &c.MasterTimeout }, moreThan(time.Duration(0))),
	switched(one("guard", "whether a master that may have forgotten locks has no vote until it has caught up; false is for comparisons",
		toggle, func(c *Config) *bool { return &c.Guard })),
	switched(one("fresh-start", "whether masters that are all empty when the proxy starts vote after 3 s",
		toggle, func(c *Config) *bool { return &c.FreshStart })),
	one("key-prefix", "`TEXT` before each lock's name in its key on the masters",
		text, func(c *Config) *string { return &c.KeyPrefix }),
	some("lock-keys", "`GLOB` of keys on which ordinary commands and scripts run on the masters, as in KEYS; once per glob",
		func(c *Config) *[]string { return &c.LockKeys }, lockGlob),
	some("lock-tags", "`GLOB` of lock keys with a hash tag ({…}) that are kept together with all others of that tag, so that one command or script can change several; once per glob",
		func(c *Config) *[]string { return &c.LockTags }, lockGlob),
	switched(one("move-from-upstream", "whether the locks on lock-keys are the upstream's until 'redlock-proxy move' has moved them to the masters; after that it makes no difference",
		toggle, func(c *Config) *bool { return &c.MoveFromUpstream })),
	atOnce(one("no-ttl", "what becomes of a lock key without a TTL, `WHICH`: allow or refuse",
		text, func(c *Config) *string { return &c.NoTTL }, oneOf("allow", "refuse"))),
	one("cluster-mode", "whether a proxy without an upstream says that it is a cluster of one node, for clients of clusters, `WHICH`: off or emulated",
		text, func(c *Config) *string { return &c.ClusterMode }, oneOf("off", "emulated")),
	atOnce(one("max-clients", "how many clients may be connected at once, a `NUMBER`",
		number, func(c *Config) *int { return &c.MaxClients }, atLeast(1))),
	atOnce(one("max-input-memory", "memory limit for incomplete commands of all clients and what is kept for them between commands, a `SIZE` (256mb): a client that would exceed it is disconnected",
		size, func(c *Config) *int64 { return &c.MaxInputMemory }, leastSize)),
	atOnce(one("max-unread-memory", "how much of replies all clients together may leave unread, a `SIZE`: who has done so for longest is disconnected",
		size, func(c *Config) *int64 { return &c.MaxUnreadMemory }, leastSize)),
	atOnce(one("max-message-memory", "how much may wait of messages for subscribers of a proxy without an upstream, all together, a `SIZE`: for whom most waits is disconnected",
		size, func(c *Config) *int64 { return &c.MaxMessageMemory }, leastSize)),
	atOnce(one("drain-timeout", "how long a stopping proxy waits for what is still running, a `DURATION`",
		duration, func(c *Config) *time.Duration { return &c.DrainTimeout }, atLeast(time.Duration(0)))),
	atOnce(one("drain-delay", "how long a proxy that is asked to stop still takes clients, and is not ready, before it drains, a `DURATION`",
		duration, func(c *Config) *time.Duration { return &c.DrainDelay }, atLeast(time.Duration(0)))),
	atOnce(switched(one("audit-log", "whether each grant and release of a lock is logged, with key and client",
		toggle, func(c *Config) *bool { return &c.AuditLog }))),
	atOnce(one("log-level", "least severe `LEVEL` that is logged: debug, info, warn or error",
		text, func(c *Config) *string { return &c.LogLevel }, oneOf("debug", "info", "warn", "error"))),
	atOnce(one("log-format", "`FORM` of the log lines: text or json",
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
