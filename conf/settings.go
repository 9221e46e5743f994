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
	// FileFlag is the flag that names the configuration file. It is no setting of the file itself.
	FileFlag = "config"
	// FileEnv is the environment variable that names the configuration file if the flag does not.
	FileEnv = "REDLOCK_CONFIG"
)

// Setting describes one row of the table that defines the flags, environment variables and YAML
// keys.
type Setting struct {
	// Name is the name in kebab case: the flag without its dashes, and the YAML key.
	Name string
	// FormerName is the name of the setting in an earlier version, which still works, or empty.
	FormerName string
	// Usage is the help text, with units, after the placeholder of the value: "`DURATION`: …".
	Usage string
	// Default is the default value, as a user would write it. It is empty for a repeated setting.
	Default string
	// IsList is set if the setting takes several values: a repeated flag, a YAML list, or a
	// variable with values separated by white space.
	IsList bool
	// IsBool is set for a boolean setting, whose flag without a value means true.
	IsBool bool
	// Reload is the time when a change takes effect after the configuration has been read again.
	Reload ReloadMode

	protects        bool                           // without it the proxy accepts more clients
	mayHavePassword bool                           // values may contain a password
	isYAMLString    bool                           // in YAML a string, not a number or a boolean
	set             func(*Config, []string) error  // parses, checks and stores; errors omit values
	get             func(Config) (values []string) // the inverse of set
	copy            func(to *Config, from Config)  // copies the value
}

// Env returns the name of the setting's environment variable, such as REDLOCK_MAX_TTL.
func (s Setting) Env() string { return variableName(s.Name) }

// variableName returns the environment variable of a name.
func variableName(name string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// settingNameOf returns the name of the setting to which an environment variable would belong.
func settingNameOf(variable string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, EnvPrefix), "_", "-"))
}

// Names returns the name, and the former name if there is one.
func (s Setting) Names() []string {
	return slices.DeleteFunc([]string{s.Name, s.FormerName}, func(name string) bool { return name == "" })
}

// Settings returns all settings, in the order of help. The caller owns the slice.
func Settings() []Setting { return slices.Clone(settingsTable) }

// settingsTable holds all settings. It never changes.
var settingsTable = []Setting{
	withReload(MastersAtOnce, withPasswords(requiredList("master", "`URL`: one independent Redis master (redis://, "+
		"rediss:// or unix://); once per master",
		func(c *Config) *[]string { return &c.Masters }, checkMasterURL))),
	withReload(PasswordAtOnce, withPasswords(oneValue("upstream", "`URL`: your Redis, which gets every command that "+
		"is not the proxy's own (redis://, rediss://, unix://, redis+sentinel:// with the Sentinels that know it, or "+
		"redis+cluster:// with nodes of a Redis Cluster); without it the proxy is a lock server",
		textCodec, func(c *Config) *string { return &c.Upstream }, checkUpstreamURL))),
	withReloadAtOnce(oneValue("upstream-timeout", "`DURATION`: time limit for connecting to the upstream, and for its "+
		"answers to the proxy's own questions",
		durationCodec, func(c *Config) *time.Duration { return &c.UpstreamTimeout }, moreThan(time.Duration(0)))),
	withReloadAtOnce(oneValue("ca", "`FILE`: PEM file with the certificate authorities of rediss:// servers, in addition "+
		"to the system's",
		textCodec, func(c *Config) *string { return &c.CA })),
	withReloadAtOnce(oneValue("client-cert", "`FILE`: PEM file with the certificate that the proxy presents to rediss:// "+
		"servers",
		textCodec, func(c *Config) *string { return &c.ClientCert })),
	withReloadAtOnce(oneValue("client-key", "`FILE`: PEM file with the key of client-cert",
		textCodec, func(c *Config) *string { return &c.ClientKey })),
	withReloadAtOnce(oneValue("client-password-file", "`FILE`: file with the password that clients must log in with if "+
		"the upstream's URL contains a login",
		textCodec, func(c *Config) *string { return &c.ClientPasswordFile })),
	withReloadAtOnce(withBool(oneValue("share-upstream-login", "let every client use the login in the upstream's URL "+
		"without a login of its own",
		boolCodec, func(c *Config) *bool { return &c.ShareUpstreamLogin }))),
	oneValue("acl-file", "`FILE`: file with the proxy's own users, in the format of Redis' ACL file: clients log in "+
		"at the proxy, not at the upstream",
		textCodec, func(c *Config) *string { return &c.ACLFile }),
	oneValue("listen", "`ADDR`: address (host:port) for clients; port 0 lets the system choose",
		textCodec, func(c *Config) *string { return &c.Listen }, checkHostPort),
	oneValue("cluster-ports", "`PORTS`: range of ports (6401-6499) at which the proxy serves the nodes of a "+
		"redis+cluster:// upstream, one port for each",
		textCodec, func(c *Config) *string { return &c.ClusterPorts }, checkPorts),
	oneValue("announce", "`HOST`: address or name at which clients reach the ports for the nodes of a cluster; empty: "+
		"the address at which a client has reached the proxy",
		textCodec, func(c *Config) *string { return &c.Announce }, allowEmpty(checkAnnouncedHost)),
	withProtection(withReloadAtOnce(oneValue("tls-cert", "`FILE`: PEM file with the certificate chain that the proxy presents to "+
		"clients, which must then speak TLS",
		textCodec, func(c *Config) *string { return &c.TLSCert }))),
	withProtection(withReloadAtOnce(oneValue("tls-key", "`FILE`: PEM file with the key of tls-cert",
		textCodec, func(c *Config) *string { return &c.TLSKey }))),
	withProtection(withReloadAtOnce(oneValue("tls-client-ca", "`FILE`: PEM file with the certificate authorities of clients: a client "+
		"without such a certificate is refused",
		textCodec, func(c *Config) *string { return &c.TLSClientCA }))),
	withReloadAtOnce(withBool(oneValue("protected-mode", "refuse clients from other machines if no login is required",
		boolCodec, func(c *Config) *bool { return &c.ProtectedMode }))),
	optionalList("proxy-protocol", "`ADDR`: address or network (10.0.0.0/8) of load balancers, which must name "+
		"their client by the PROXY protocol, version 1 or 2; once per network",
		func(c *Config) *[]string { return &c.ProxyProtocol }, checkNetwork),
	oneValue("admin", "`ADDR`: address (host:port) of the admin port, which serves a status page, health and metrics "+
		"by HTTP to every client; empty: none",
		textCodec, func(c *Config) *string { return &c.Admin }, allowEmpty(checkHostPort)),
	withFormerName("admin-names", optionalList("admin-hosts", "`NAME`: host name with a dot at which the admin port "+
		"answers, in addition to the name of the machine; once per name",
		func(c *Config) *[]string { return &c.AdminHosts })),
	withReloadAtOnce(withBool(oneValue("admin-pprof", "serve profiles of the process at the admin port (/debug/pprof/)",
		boolCodec, func(c *Config) *bool { return &c.AdminPprof }))),
	withBool(oneValue("admin-locks", "show the held locks on the status page, with their keys and clients",
		boolCodec, func(c *Config) *bool { return &c.AdminLocks })),
	withReloadAtOnce(oneValue("max-ttl", "`DURATION`: longest TTL that a client may ask for; also the wait after all "+
		"masters lost their data, if no proxy knows the TTLs in use",
		durationCodec, func(c *Config) *time.Duration { return &c.MaxTTL }, atLeast(time.Millisecond))),
	oneValue("master-timeout", "`DURATION`: time limit for a master's answer; a master that does not answer in time "+
		"has no vote",
		durationCodec, func(c *Config) *time.Duration { return &c.MasterTimeout }, moreThan(time.Duration(0))),
	withBool(oneValue("guard", "withhold the vote of a master that may have lost locks until it has caught up; false "+
		"is for comparisons only",
		boolCodec, func(c *Config) *bool { return &c.Guard })),
	withBool(oneValue("fresh-start", "let masters that are all empty when the proxy starts vote after 3 s",
		boolCodec, func(c *Config) *bool { return &c.FreshStart })),
	oneValue("key-prefix", "`TEXT`: text before each lock's name in its key on the masters",
		textCodec, func(c *Config) *string { return &c.KeyPrefix }),
	optionalList("lock-keys", "`GLOB`: glob, as in KEYS, of keys on which ordinary commands and scripts run on "+
		"the masters; once per glob",
		func(c *Config) *[]string { return &c.LockKeys }, lockGlobRule("lock-keys", "")),
	optionalList("lock-tags", "`GLOB`: glob of lock keys with a hash tag ({…}) that are kept together by tag, so "+
		"that one command or script can change several; once per glob",
		func(c *Config) *[]string { return &c.LockTags }, lockGlobRule("lock-tags", "")),
	withReloadAtOnce(optionalList("lock-class", "`NAME=GLOB`: class of the locks whose keys match the glob, as a label of "+
		"metrics; the first glob that matches counts; once per glob, at most 50",
		func(c *Config) *[]string { return &c.LockClass }, checkLockClass)),
	withBool(oneValue("move-from-upstream", "keep the locks at the upstream until 'redlock-proxy move' moves them to "+
		"the masters; no effect after that",
		boolCodec, func(c *Config) *bool { return &c.MoveFromUpstream })),
	withFormerName("no-ttl", withReloadAtOnce(oneValue("locks-without-ttl", "`POLICY`: lock keys without a TTL: allow or refuse",
		textCodec, func(c *Config) *string { return &c.LocksWithoutTTL }, oneOf("allow", "refuse")))),
	oneValue("cluster-mode", "`MODE`: off, or emulated: a proxy without an upstream tells cluster clients that it is "+
		"a cluster of one node",
		textCodec, func(c *Config) *string { return &c.ClusterMode }, oneOf("off", "emulated")),
	withReloadAtOnce(oneValue("max-clients", "`NUMBER`: limit of connected clients",
		numberCodec, func(c *Config) *int { return &c.MaxClients }, atLeast(1))),
	withReloadAtOnce(oneValue("max-input-memory", "`SIZE`: memory limit for incomplete commands of all clients and what "+
		"is kept for them between commands; a client that would exceed it is disconnected",
		sizeCodec, func(c *Config) *int64 { return &c.MaxInputMemory }, checkMemorySize)),
	withReloadAtOnce(oneValue("max-unread-memory", "`SIZE`: memory limit for unread replies of all clients; the client "+
		"that has left some unread for longest is disconnected",
		sizeCodec, func(c *Config) *int64 { return &c.MaxUnreadMemory }, checkMemorySize)),
	withReloadAtOnce(oneValue("max-message-memory", "`SIZE`: memory limit for messages to subscribers of a proxy without "+
		"an upstream; the subscriber for which most wait is disconnected",
		sizeCodec, func(c *Config) *int64 { return &c.MaxMessageMemory }, checkMemorySize)),
	withReloadAtOnce(oneValue("drain-timeout", "`DURATION`: time limit for commands that still run when the proxy stops",
		durationCodec, func(c *Config) *time.Duration { return &c.DrainTimeout }, atLeast(time.Duration(0)))),
	withReloadAtOnce(oneValue("drain-delay", "`DURATION`: time for which a stopping proxy still accepts clients, but is "+
		"not ready, before it drains",
		durationCodec, func(c *Config) *time.Duration { return &c.DrainDelay }, atLeast(time.Duration(0)))),
	withReloadAtOnce(withBool(oneValue("audit-log", "log each grant and release of a lock, with key and client",
		boolCodec, func(c *Config) *bool { return &c.AuditLog }))),
	withReloadAtOnce(oneValue("log-level", "`LEVEL`: least severe level that is logged: debug, info, warn or error",
		textCodec, func(c *Config) *string { return &c.LogLevel }, oneOf("debug", "info", "warn", "error"))),
	withReloadAtOnce(oneValue("log-format", "`FORMAT`: format of log lines: text or json",
		textCodec, func(c *Config) *string { return &c.LogFormat }, oneOf("text", "json"))),
}

// oneValue returns the row of a setting with one value.
func oneValue[T any](name, usage string, k codec[T], field func(*Config) *T, rules ...func(T) error) Setting {
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
	copyValue := func(to *Config, from Config) { *field(to) = *field(&from) }
	return Setting{Name: name, Usage: usage, Default: get(Default())[0], isYAMLString: k.isYAMLString, set: set, get: get, copy: copyValue}
}

// requiredList returns the row of a repeated setting that needs at least one value if it is given.
func requiredList(name, usage string, field func(*Config) *[]string, rules ...func(string) error) Setting {
	s := optionalList(name, usage, field, rules...)
	set := s.set
	s.set = func(c *Config, values []string) error {
		if len(values) == 0 {
			return errors.New("is given without a value")
		}
		return set(c, values)
	}
	return s
}

// optionalList returns the row of a repeated setting that may be given without a value.
func optionalList(name, usage string, field func(*Config) *[]string, rules ...func(string) error) Setting {
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
	copyValue := func(to *Config, from Config) { *field(to) = *field(&from) }
	return Setting{Name: name, Usage: usage, IsList: true, isYAMLString: true, set: set, get: get, copy: copyValue}
}

// withBool marks a row as a boolean setting.
func withBool(s Setting) Setting {
	s.IsBool = true
	return s
}

// withReload sets the time at which a change of the setting takes effect.
func withReload(mode ReloadMode, s Setting) Setting {
	s.Reload = mode
	return s
}

func withReloadAtOnce(s Setting) Setting { return withReload(AtOnce, s) }

// withProtection marks a setting without which the proxy accepts clients that it would refuse with
// it.
func withProtection(s Setting) Setting {
	s.protects = true
	return s
}

// withFormerName sets the former name of a setting.
func withFormerName(name string, s Setting) Setting {
	s.FormerName = name
	return s
}

// withPasswords marks a row whose values are URLs that may contain passwords.
func withPasswords(s Setting) Setting {
	s.mayHavePassword = true
	return s
}

// check returns an error if the value is invalid for s.
func (s Setting) check(value string) error { return s.set(new(Config), []string{value}) }

// redact returns the value for errors and logs, with passwords hidden.
func (s Setting) redact(value string) string {
	if s.mayHavePassword {
		return Redact(value)
	}
	return redactIfURL(value)
}

// findSetting returns the setting with that name or former name.
func findSetting(name string) (Setting, bool) {
	i := slices.IndexFunc(settingsTable, func(s Setting) bool { return slices.Contains(s.Names(), name) })
	if i < 0 {
		return Setting{}, false
	}
	return settingsTable[i], true
}

func settingNames() []string {
	names := make([]string, len(settingsTable))
	for i, s := range settingsTable {
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
