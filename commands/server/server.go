package server

import (
	"context"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockdetect"
	"redlock-proxy/commands/move"
	"redlock-proxy/commands/move/directwrites"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// databases is how many databases a client may select, as in Redis by default.
const databases = 16

// redisVersion is the version of Redis whose manners the proxy has when it
// answers for itself. Client libraries choose commands by it.
const redisVersion = "7.2.4"

// Options are what a Server shows. MaxClients and Waiting must be set.
type Options struct {
	// Version is the proxy's own version, as INFO shows it.
	Version string
	// MaxClients is the limit on connections now, as CONFIG GET shows it.
	MaxClients func() int
	// Masters returns the state of the masters. The default is none.
	Masters func() []quorum.MasterStatus
	// Look sees whether locks are available. The default is that they are not.
	Look func() availability.Look
	// RemovalsPending is how many locks are still to be removed that a command with an error may
	// have left. The default is none.
	RemovalsPending func() int
	// Upstream returns its address and, if it is down, why. It is nil where there is none.
	Upstream func() (name string, err error)
	// Clients counts the connected clients, Waiting those that wait for a lock. The default is 0.
	Clients, Waiting func() int
	// AcceptErrors counts the connections that could not be accepted. The default is 0.
	AcceptErrors func() int64
	// ID is the proxy's identity, by which PROXY PATH knows it. Without one it knows no loop.
	ID string
	// Onward asks the upstream PROXY PATH, with these identities; the error is ErrLoop where it
	// leads back to one of them. It is nil where there is no upstream.
	Onward func(ctx context.Context, ids []string) error
	// Draining reports whether the proxy is about to stop. The default is no.
	Draining func() bool
	// Reload reads the configuration again and returns which settings changed, and which are
	// pending until a restart; by is who asks. It is nil where there is none to be read. The error
	// says why nothing changed.
	Reload func(by string) (changed, pending []string, err error)
	// Mover moves the locks between the upstream and the masters. It is nil where that cannot be.
	Mover *move.Mover
	// Strays are the lock keys at the upstream while the locks are at the masters; nil where nobody
	// looks for them.
	Strays *directwrites.Watcher
	// LockKeys is set where there are lock keys, be they at the upstream for now: then clients are
	// not to learn of other servers.
	LockKeys bool
	// Programs counts the locks without a TTL and the side effects that were lost. It is nil where
	// there are no lock keys on the masters.
	Programs func() (endless, lost int64)
	// CachedScripts counts the scripts that are known here. The default is 0.
	CachedScripts func() int
	// Cluster has a proxy without an upstream say that it is a cluster of one node.
	Cluster bool
	// Uncovered are the locks on keys of the upstream; nil without one.
	Uncovered *lockdetect.Notices
}

// Server is what the proxy says of itself. It is safe for concurrent use.
type Server struct {
	opts    Options
	started time.Time
	catalog catalog
}

// New makes a Server.
func New(opts Options) *Server { return &Server{opts: opts.orDefault(), started: time.Now()} }

func (o Options) orDefault() Options {
	if o.Masters == nil {
		o.Masters = func() []quorum.MasterStatus { return nil }
	}
	if o.Look == nil {
		o.Look = func() availability.Look { return availability.Look{} }
	}
	if o.RemovalsPending == nil {
		o.RemovalsPending = func() int { return 0 }
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

// List has COMMAND list these, in this order.
func (s *Server) List(all []*command.Command) { s.catalog = newCatalog(all) }

// Commands are those of a proxy without an upstream: what clients send when they connect, or to
// look around.
func (s *Server) Commands() []*command.Command {
	return []*command.Command{
		command.OfRedis("ping", ping, command.DocsOf("connection", "Returns the server's liveliness response.", "1.0.0", command.Optional(command.Text("message")))),
		command.OfRedis("echo", echo, command.DocsOf("connection", "Returns the given string.", "1.0.0", command.Text("message"))),
		command.OfRedis("hello", s.hello, command.DocsOf("connection", "Handshakes with the Redis server.", "6.0.0", command.Optional(command.Text("protover")))),
		command.OfRedis("auth", auth, command.DocsOf("connection", "Authenticates the connection.", "1.0.0", command.Optional(command.Text("username")), command.Text("password"))),
		command.OfRedis("client", client, command.DocsOf("connection", "A container for client connection commands.", "2.4.0")),
		command.OfRedis("select", selectDB, command.DocsOf("connection", "Changes the selected database.", "1.0.0", command.Integer("index"))),
		command.OfRedis("quit", quit, command.DocsOf("connection", "Closes the connection.", "1.0.0")),
		command.OfRedis("reset", reset, command.DocsOf("connection", "Resets the connection.", "6.2.0")),
		command.OfRedis("info", s.info, command.DocsOf("server", "Returns information and statistics about the server.", "1.0.0", command.Optional(command.Text("section")))),
		command.OfRedis("config", command.Subcommands{"get": command.Sub(-3, s.configGet)}.Run, command.DocsOf("server", "A container for server configuration commands.", "2.0.0")),
		command.OfRedis("command", s.catalog.command, command.DocsOf("server", "Returns detailed information about all commands.", "2.8.13")),
		command.OfRedis("time", now, command.DocsOf("server", "Returns the server time.", "2.6.0")),
		command.OfRedis("cluster", s.cluster, command.DocsOf("cluster", "A container for Redis Cluster commands.", "3.0.0")),
		command.OfRedis("role", roleAlone, command.DocsOf("server", "Returns the replication role.", "2.8.12")),
		command.OfRedis("readonly", s.readOnly, command.DocsOf("cluster", "Enables read-only queries for a connection to a Redis Cluster replica node.", "3.0.0")),
	}
}

// Proxy is the command for whoever operates the proxy. All of it has one name, so that no other is
// taken from Redis.
func (s *Server) Proxy() *command.Command {
	d := command.DocsOf(command.OwnGroup, "A container for the commands of the proxy itself.", "0.1.0")
	d.Categories = "admin slow dangerous"
	return &command.Command{Name: "proxy", Arity: -2, Guarded: true, Run: s.proxy, Docs: d}
}

// Merged are the commands in whose replies ours are merged with the upstream's own, and, where
// there are lock keys, those that would lead clients to other servers.
func (s *Server) Merged() []*command.Command {
	info := command.OfRedis("info", s.mergedInfo, command.Docs{})
	all := []*command.Command{command.OfRedis("command", s.catalog.mergedCommand, command.Docs{}), info}
	if s.opts.LockKeys {
		role := command.OfRedis("role", role, command.Docs{})
		info.Hides, role.Hides = tellsOfServers, tellsOfServers
		all = append(all, role)
	}
	for _, c := range all {
		c.Asks = true
	}
	if s.opts.LockKeys {
		cluster := command.OfRedis("cluster", noCluster, command.Docs{})
		cluster.Local = true
		all = append(all, cluster)
	}
	return all
}
