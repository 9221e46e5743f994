package server

import (
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockdetect"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/commands/move"
	"redlock-proxy/commands/move/directwrites"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// databases is the number of databases that a client may select, as in Redis by default.
const databases = 16

// redisVersion is the version of Redis that the proxy emulates when there is no upstream. Client
// libraries choose commands by it.
const redisVersion = "7.2.4"

// Options configures a Server. MaxClients and WaiterCount are required.
type Options struct {
	// Version is the proxy's version, as INFO shows it.
	Version string
	// MaxClients returns the current limit on connections, as CONFIG GET shows it.
	MaxClients func() int
	// Masters returns the state of the masters. The default returns none.
	Masters func() []quorum.MasterStatus
	// Availability returns the facts that decide whether locks are available. By default, locks are
	// unavailable.
	Availability func() availability.Inputs
	// RemovalsPending counts the locks of failed commands that the proxy must still remove. The
	// default returns 0.
	RemovalsPending func() int
	// KeptLocks returns the counters of the locks that the proxy renews for clients. The default
	// returns zeros.
	KeptLocks func() keepalive.Counts
	// Upstream returns the upstream's address and, if it is down, the cause. It is nil if there is
	// no upstream.
	Upstream func() (name string, err error)
	// Clients counts the connected clients, WaiterCount the clients that wait for a lock. The
	// default of Clients returns 0.
	Clients, WaiterCount func() int
	// AcceptErrors counts the connections that could not be accepted. The default returns 0.
	AcceptErrors func() int64
	// ID is the proxy's identity for PROXY PATH, and its node ID if Cluster is set. Without an ID,
	// the proxy detects no loop.
	ID string
	// Draining reports whether the proxy is shutting down. The default returns false.
	Draining func() bool
	// Reload reloads the configuration. It returns the settings that changed, and the settings that
	// require a restart. by describes the client that requested the reload. After an error, usually
	// no setting has changed; otherwise the log says that the configuration was reloaded only in
	// part. Reload is nil if there is no configuration to reload.
	Reload func(by string) (changed, pending []string, err error)
	// Mover moves the locks between the upstream and the masters. It is nil if the proxy cannot
	// move locks.
	Mover *move.Mover
	// DirectWrites watches for lock keys that clients change at the upstream while the locks are at
	// the masters. It is nil if the proxy does not watch the upstream.
	DirectWrites *directwrites.Watcher
	// LockKeys is set if there are lock keys, even if they are at the upstream now. Then replies
	// must not name other servers.
	LockKeys bool
	// NamesNodes reports whether the reply to a command may name nodes of a cluster; nil if the
	// upstream is no cluster. The proxy translates such replies.
	NamesNodes func(words [][]byte) bool
	// Nodes returns the state of the cluster's nodes, and the number of slots that no node serves.
	// It is nil if the upstream is no cluster.
	Nodes func() (all []Node, unservedSlots int)
	// LockKeyCounts counts the locks without a TTL, and the lost side effects. It is nil if there
	// are no lock keys on the masters.
	LockKeyCounts func() (withoutTTL, lost int64)
	// CachedScripts counts the cached scripts. The default returns 0.
	CachedScripts func() int
	// Cluster makes a proxy without an upstream report that it is a cluster of one node.
	Cluster bool
	// LockDetector records the locks on keys of the upstream. It is nil without an upstream.
	LockDetector *lockdetect.Detector
}

// Server implements the commands about the proxy itself. It is safe for concurrent use.
type Server struct {
	opts      Options
	startTime time.Time
	catalog   catalog
}

// New returns a Server with these options.
func New(opts Options) *Server { return &Server{opts: opts.withDefaults(), startTime: time.Now()} }

func (o Options) withDefaults() Options {
	if o.Masters == nil {
		o.Masters = func() []quorum.MasterStatus { return nil }
	}
	if o.Availability == nil {
		o.Availability = func() availability.Inputs { return availability.Inputs{} }
	}
	if o.RemovalsPending == nil {
		o.RemovalsPending = func() int { return 0 }
	}
	if o.KeptLocks == nil {
		o.KeptLocks = func() keepalive.Counts { return keepalive.Counts{} }
	}
	if o.Clients == nil {
		o.Clients = func() int { return 0 }
	}
	if o.CachedScripts == nil {
		o.CachedScripts = func() int { return 0 }
	}
	if o.AcceptErrors == nil {
		o.AcceptErrors = func() int64 { return 0 }
	}
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
	return o
}

// SetCatalog sets the commands that COMMAND lists, in this order.
func (s *Server) SetCatalog(all []*command.Command) { s.catalog = newCatalog(all) }

// Commands returns the commands of a proxy without an upstream that clients send when they connect,
// or inspect a server.
func (s *Server) Commands() []*command.Command {
	return []*command.Command{
		command.NewRedisCommand("ping", ping,
			command.DocsOf("connection", "Returns the server's liveliness response.",
				"1.0.0", command.Optional(command.Text("message")))),
		command.NewRedisCommand("echo", echo,
			command.DocsOf("connection", "Returns the given string.", "1.0.0", command.Text("message"))),
		command.NewRedisCommand("hello", s.hello,
			command.DocsOf("connection", "Handshakes with the Redis server.",
				"6.0.0", command.Optional(command.Text("protover")))),
		command.NewRedisCommand("auth", auth,
			command.DocsOf("connection", "Authenticates the connection.",
				"1.0.0", command.Optional(command.Text("username")), command.Text("password"))),
		command.NewRedisCommand("client", client,
			command.DocsOf("connection", "A container for client connection commands.", "2.4.0")),
		command.NewRedisCommand("select", selectDB,
			command.DocsOf("connection", "Changes the selected database.", "1.0.0", command.Integer("index"))),
		command.NewRedisCommand("quit", quit, command.DocsOf("connection", "Closes the connection.", "1.0.0")),
		command.NewRedisCommand("reset", reset, command.DocsOf("connection", "Resets the connection.", "6.2.0")),
		command.NewRedisCommand("info", s.info,
			command.DocsOf("server", "Returns information and statistics about the server.",
				"1.0.0", command.Optional(command.Text("section")))),
		command.NewRedisCommand("config", command.Subcommands{"get": command.Sub(-3, s.configGet)}.Run,
			command.DocsOf("server", "A container for server configuration commands.", "2.0.0")),
		command.NewRedisCommand("command", s.catalog.command,
			command.DocsOf("server", "Returns detailed information about all commands.", "2.8.13")),
		command.NewRedisCommand("time", serverTime, command.DocsOf("server", "Returns the server time.", "2.6.0")),
		command.NewRedisCommand("cluster", s.cluster,
			command.DocsOf("cluster", "A container for Redis Cluster commands.", "3.0.0")),
		command.NewRedisCommand("role", roleWithoutUpstream,
			command.DocsOf("server", "Returns the replication role.", "2.8.12")),
		command.NewRedisCommand("readonly", s.readOnly,
			command.DocsOf("cluster", "Enables read-only queries for a connection to a Redis Cluster replica node.",
				"3.0.0")),
	}
}

// ProxyCommand returns the command PROXY, for operators. All operations are its subcommands, so
// that only one name can conflict with a command of a later Redis.
func (s *Server) ProxyCommand() *command.Command {
	d := command.DocsOf(command.OwnGroup, "A container for the commands of the proxy itself.", "0.1.0")
	d.Categories = "admin slow dangerous"
	return &command.Command{Name: "proxy", Arity: -2, RequiresLogin: true, Run: s.proxy, Docs: d}
}

// MergedCommands returns the commands whose replies merge the proxy's part with the upstream's. If
// there are lock keys, it also returns the commands whose replies could send clients to other
// servers.
func (s *Server) MergedCommands() []*command.Command {
	info := command.NewRedisCommand("info", s.mergedInfo, command.Docs{})
	all := []*command.Command{command.NewRedisCommand("command", s.catalog.mergedCommand, command.Docs{}), info}
	if s.opts.NamesNodes != nil {
		all = append(all, s.translatedCommands()...)
	}
	if s.opts.LockKeys && s.opts.NamesNodes == nil {
		role := command.NewRedisCommand("role", role, command.Docs{})
		info.FiltersReply, role.FiltersReply = hasServerAddresses, hasServerAddresses
		all = append(all, role)
	}
	for _, c := range all {
		c.NeedsUpstreamReply = true
		if s.opts.NamesNodes != nil {
			c.FiltersReply = s.opts.NamesNodes
		}
	}
	if s.opts.LockKeys && s.opts.NamesNodes == nil {
		cluster := command.NewRedisCommand("cluster", replyNoCluster, command.Docs{})
		cluster.NeverForwarded = true
		all = append(all, cluster)
	}
	return all
}

// translatedCommands returns the commands whose replies name nodes of a cluster, except for INFO.
// The proxy translates their replies where it receives them.
func (s *Server) translatedCommands() []*command.Command {
	return []*command.Command{
		command.NewRedisCommand("cluster", relayReply, command.Docs{}), command.NewRedisCommand("role", relayReply, command.Docs{}),
	}
}

// relayReply answers with the upstream's reply.
func relayReply(c command.Call) {
	if reply, ok := c.AskUpstream(); ok {
		c.Out.WriteRaw(reply)
	}
}
