package conf

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Config holds the configuration of a proxy. The zero value is not usable: start from [Default] or
// [Load].
type Config struct {
	// Masters are the URLs of the independent Redis masters that hold the locks, one URL each:
	// redis://, rediss:// or unix://. They may contain passwords, so print them only through
	// [Redact]. There is no default.
	Masters []string
	// Upstream is the URL of the Redis that gets all commands except the proxy's own, or empty. It
	// may contain a password, and the number of the database that every client starts with. In the
	// form of [ReadSentinel] it names Sentinels, in the form of [ReadCluster] nodes of a cluster.
	Upstream string
	// UpstreamTimeout limits the time to connect to the upstream, and the wait for each reply to
	// the proxy's own commands.
	UpstreamTimeout time.Duration
	// CA is the path of a PEM file with the certificate authorities to trust for rediss:// servers,
	// or empty. The proxy also trusts the system's certificate authorities.
	CA string
	// ClientCert and ClientKey are the paths of the PEM files with the certificate that the proxy
	// presents to rediss:// servers, and with its key. Both are empty if there is none.
	ClientCert, ClientKey string
	// ClientPasswordFile is the path of a file with the password that clients must log in with, or
	// empty. If the URL of the upstream has a login, the file is required unless ShareUpstreamLogin
	// or ACLFile is set.
	ClientPasswordFile string
	// ShareUpstreamLogin lets every client of the proxy use the login in the URL of the upstream.
	ShareUpstreamLogin bool
	// ACLFile is the path of a file in the format of Redis' ACL file. Clients log in at the proxy
	// as the users in this file. It is empty if the proxy has no users of its own.
	ACLFile string
	// Listen is the TCP address for clients, host:port. With port 0 the system chooses the port.
	Listen string
	// ClusterPorts is the range of ports at which the proxy serves the nodes of a cluster.
	ClusterPorts string
	// Announce is the host at which clients reach the ClusterPorts. If it is empty, the proxy
	// announces the address at which the client has reached the proxy.
	Announce string
	// TLSCert and TLSKey are the paths of the PEM files with the certificate that the proxy
	// presents to its clients, and with its key. If both are empty, the proxy does not use TLS for
	// clients.
	TLSCert, TLSKey string
	// TLSClientCA is the path of a PEM file with certificate authorities. One of them must have
	// signed the certificate of a client. If it is empty, clients need no certificate.
	TLSClientCA string
	// ProtectedMode refuses clients from other machines if clients need neither a login nor a
	// certificate.
	ProtectedMode bool
	// ProxyProtocol lists the addresses and networks of load balancers. A load balancer must name
	// the client of each connection by the PROXY protocol.
	ProxyProtocol []string
	// Admin is the TCP address (host:port) of the admin port, or empty. The port serves a status
	// page, health and metrics by HTTP. With port 0 the system chooses the port.
	Admin string
	// AdminHosts lists host names at which the admin port answers, in addition to addresses,
	// localhost, names without a dot and the name of the machine.
	AdminHosts []string
	// AdminPprof makes the admin port serve profiles of the process.
	AdminPprof bool
	// AdminLocks makes the status page show the held locks, with their keys and clients.
	AdminLocks bool
	// MaxTTL is the longest TTL that a client may ask for, at least 1 ms. A time.Duration is at
	// most 292 years, so Redis and its scripts represent each valid TTL exactly in milliseconds.
	MaxTTL time.Duration
	// MasterTimeout limits the time that a master may take to answer. A master that takes longer
	// has no vote. MasterTimeout is shorter than MaxTTL.
	MasterTimeout time.Duration
	// Guard withholds the vote of a master that may have forgotten locks until it has caught up.
	// Without it, locks are only as safe as with any Redlock library.
	Guard bool
	// FreshStart lets masters vote after 3 s if the proxy reaches all of them at its start, and all
	// are empty and unmarked. Otherwise the masters wait until every lock that they may have
	// forgotten has expired.
	FreshStart bool
	// DrainTimeout limits how long a stopping proxy waits for running commands. With zero it does
	// not wait.
	DrainTimeout time.Duration
	// DrainDelay is the time for which a proxy that is asked to stop still accepts clients, but
	// reports that it is not ready. It should be as long as load balancers need to send clients to
	// other proxies. With zero the proxy drains immediately.
	DrainDelay time.Duration
	// KeyPrefix is the text before each lock's name in its key on the masters. If it is empty, the
	// key is the name itself, as clients that run Redlock on the same masters need it.
	KeyPrefix string
	// LockKeys are glob patterns, as in KEYS. Ordinary commands and scripts on matching keys run on
	// the masters.
	LockKeys []string
	// LockTags are glob patterns of lock keys with a hash tag. The masters keep keys with the same
	// hash tag together, so that one command or script can change several of them.
	LockTags []string
	// LockClass lists classes of locks, each as a name, "=" and a glob of keys. LockClasses splits
	// them. The class is a label of metrics.
	LockClass []string
	// MoveFromUpstream keeps the locks at the upstream until an operator moves them to the masters.
	MoveFromUpstream bool
	// ClusterMode is "emulated" if a proxy without an upstream presents itself as a cluster of one
	// node, else "off".
	ClusterMode string
	// LocksWithoutTTL is "refuse" if a lock key must have a TTL, else "allow".
	LocksWithoutTTL string
	// MaxClients limits the number of connected clients. It is at least 1.
	MaxClients int
	// MaxInputMemory limits the memory for incomplete commands, MaxUnreadMemory for replies that
	// clients have not read, and MaxMessageMemory for messages that wait for subscribers. Each
	// limit is in bytes, for all clients together, and at least 4 MB.
	MaxInputMemory, MaxUnreadMemory, MaxMessageMemory int64
	// AuditLog makes the proxy log each grant and release of a lock, independently of LogLevel.
	AuditLog bool
	// LogLevel is the least severe level that the proxy logs: debug, info, warn or error.
	LogLevel string
	// LogFormat is the format of log lines: text or json.
	LogFormat string

	// formerNameWarnings has a warning for each setting that was given by its former name.
	formerNameWarnings []string
	// given holds the names of the settings that a source gives. The other settings have their
	// defaults.
	given []string
}

// Default returns the configuration of a proxy without any settings. It lacks the masters, so it is
// not valid yet.
func Default() Config {
	return Config{
		Listen:          "127.0.0.1:6380",
		ClusterPorts:    "6401-6499",
		ProtectedMode:   true,
		MaxTTL:          24 * time.Hour,
		UpstreamTimeout: 5 * time.Second,
		MasterTimeout:   250 * time.Millisecond,
		Guard:           true,
		DrainTimeout:    10 * time.Second,
		ClusterMode:     "off",
		LocksWithoutTTL: "allow",
		MaxClients:      10000,
		MaxInputMemory:  256 << 20, MaxUnreadMemory: 256 << 20, MaxMessageMemory: 256 << 20,
		LogLevel:  "info",
		LogFormat: "text",
	}
}

// String returns every setting as name="value", with passwords hidden.
func (c Config) String() string {
	var parts []string
	for _, s := range settingsTable {
		for _, text := range s.get(c) {
			parts = append(parts, fmt.Sprintf("%s=%q", s.Name, s.redact(text)))
		}
	}
	return strings.Join(parts, " ")
}

// GoString returns [Config.String] with the name of the type, so that %#v shows no password either.
func (c Config) GoString() string { return "conf.Config{" + c.String() + "}" }

// LogValue returns [Config.String], so that no log shows a password. A handler that writes JSON
// would otherwise write the fields.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }
