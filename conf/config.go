package conf

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Config is the whole configuration of a proxy. The zero value is not usable: start from [Default]
// or [Load].
type Config struct {
	// Masters are the URLs of the independent Redis masters that hold the locks, one each:
	// redis://, rediss:// or unix://. They may carry passwords: show them only through [Redact].
	// There is no default.
	Masters []string
	// Upstream is the URL of the Redis that gets every command which is not the proxy's own, or
	// empty. It may carry a password, and a database number, which every client then begins with.
	// In the form of [ReadSentinel] it names Sentinels.
	Upstream string
	// UpstreamTimeout is how long connecting to the upstream may take.
	UpstreamTimeout time.Duration
	// CA is the path of a PEM file with certificates of authorities that rediss:// servers are
	// believed by, beside those of the system, or empty.
	CA string
	// ClientCert and ClientKey are the paths of the PEM files with the certificate that the proxy
	// shows rediss:// servers, and with its key, or both empty.
	ClientCert, ClientKey string
	// ClientPasswordFile is the path of a file with the password that clients must log in with, or
	// empty. It is needed where the URL of the upstream has a login, unless ShareUpstreamLogin is
	// set.
	ClientPasswordFile string
	// ShareUpstreamLogin gives the login in the URL of the upstream to everybody who reaches the
	// proxy.
	ShareUpstreamLogin bool
	// ACLFile is the path of a file with the users that clients log in as at the proxy, in the form
	// of Redis' ACL file, or empty: the proxy has no users of its own.
	ACLFile string
	// Listen is the TCP address, host:port, on which clients are served. Port 0 lets the system
	// choose one.
	Listen string
	// TLSCert and TLSKey are the paths of the PEM files with the certificate that the proxy shows
	// its clients, and with its key. Both empty, clients speak no TLS.
	TLSCert, TLSKey string
	// TLSClientCA is the path of a PEM file with certificates of authorities, one of which must
	// have signed the certificate of a client, or empty: clients need none.
	TLSClientCA string
	// ProtectedMode turns clients from other machines away while nobody has to log in.
	ProtectedMode bool
	// ProxyProtocol are addresses and networks of load balancers that say by the PROXY protocol for
	// whom they connect, and must.
	ProxyProtocol []string
	// Admin is the TCP address, host:port, on which health and metrics are served by HTTP, or
	// empty. Port 0 lets the system choose one.
	Admin string
	// AdminNames are names by which Admin may be asked, beside addresses, localhost, names without
	// a dot and the name of the machine.
	AdminNames []string
	// AdminPprof has Admin serve profiles of the process, too.
	AdminPprof bool
	// AdminLocks has the page at Admin show which locks are held, with their keys and clients.
	AdminLocks bool
	// MaxTTL is the longest TTL that a client may ask for, at least 1 ms. A time.Duration ends at
	// 292 years, so a TTL within it is always a number of milliseconds that Redis and its scripts
	// hold exactly.
	MaxTTL time.Duration
	// MasterTimeout is how long one master may take to answer before it has no vote. It is shorter
	// than MaxTTL.
	MasterTimeout time.Duration
	// Guard keeps a master from voting that may have forgotten locks, until it has caught up.
	// Without it locks are as safe as with any Redlock library.
	Guard bool
	// FreshStart has masters vote after 3 s if all of them are reached, empty and unmarked when the
	// proxy starts. Otherwise they wait until every lock that they may have forgotten has expired.
	FreshStart bool
	// DrainTimeout is how long a stopping proxy waits for what is still running. Zero does not
	// wait.
	DrainTimeout time.Duration
	// DrainDelay is how long a proxy that is asked to stop still takes clients, while it says that
	// it is not ready, before it drains: as long as load balancers need to send clients elsewhere.
	// Zero drains at once.
	DrainDelay time.Duration
	// KeyPrefix is put before each lock's name to make the key on the masters. Empty, the key is
	// the name itself, which clients that run Redlock on the same masters need.
	KeyPrefix string
	// LockKeys are glob patterns, as in KEYS. On the keys that they match, ordinary commands and
	// scripts run on the masters.
	LockKeys []string
	// LockTags are glob patterns of keys that stand with all keys of the same hash tag, so that
	// what depends on several of them can be changed.
	LockTags []string
	// MoveFromUpstream has the locks be at the upstream until they are moved to the masters.
	MoveFromUpstream bool
	// ClusterMode is "emulated" where a proxy without an upstream says that it is a cluster of one
	// node, else "off".
	ClusterMode string
	// NoTTL is "refuse" where a lock key must not be without a TTL, else "allow".
	NoTTL string
	// MaxClients is how many client connections may be open at once, at least 1.
	MaxClients int
	// MaxInputMemory, MaxUnreadMemory and MaxMessageMemory are how many bytes all clients together
	// may have held of commands that are not complete, of replies that they have not read, and of
	// messages that wait for subscribers: at least 4 MB.
	MaxInputMemory, MaxUnreadMemory, MaxMessageMemory int64
	// AuditLog has each grant and release of a lock logged, whatever LogLevel is.
	AuditLog bool
	// LogLevel is the least severe level that is logged: debug, info, warn or error.
	LogLevel string
	// LogFormat is the form of the log lines: text or json.
	LogFormat string
}

// Default returns the configuration that holds where nothing is given. It lacks the masters, so it
// is not valid yet.
func Default() Config {
	return Config{
		Listen:          "127.0.0.1:6380",
		ProtectedMode:   true,
		MaxTTL:          24 * time.Hour,
		UpstreamTimeout: 5 * time.Second,
		MasterTimeout:   250 * time.Millisecond,
		Guard:           true,
		DrainTimeout:    10 * time.Second,
		ClusterMode:     "off",
		NoTTL:           "allow",
		MaxClients:      10000,
		MaxInputMemory:  256 << 20, MaxUnreadMemory: 256 << 20, MaxMessageMemory: 256 << 20,
		LogLevel:  "info",
		LogFormat: "text",
	}
}

// String returns every setting as name="value", without the passwords.
func (c Config) String() string {
	var parts []string
	for _, s := range table {
		for _, text := range s.get(c) {
			parts = append(parts, fmt.Sprintf("%s=%q", s.Name, s.shown(text)))
		}
	}
	return strings.Join(parts, " ")
}

// GoString is [Config.String], so that %#v shows no password either.
func (c Config) GoString() string { return "conf.Config{" + c.String() + "}" }

// LogValue is [Config.String], so that no log shows a password: a handler that writes JSON would
// else write the fields.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }
