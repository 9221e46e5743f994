package proxy

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/netip"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/auth/users"
	"redlock-proxy/proxy/nodes"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum"
)

// Options configures a server. Table must be set.
type Options struct {
	// Table holds the commands that the proxy answers itself.
	Table *commands.Table
	// UpstreamTable is the table to use while the locks are at the Upstream. LockLocation reports
	// where the locks are. Both are nil if the locks never move. If the locks cannot be at this
	// proxy's upstream, only LockLocation is set, and the proxy reports no connections.
	UpstreamTable *commands.Table
	LockLocation  LockLocation
	// Upstream gets the commands that are not in the table. If it is nil, the proxy is a lock
	// server.
	Upstream *upstream.Upstream
	// Nodes is set if the Upstream is a node of a cluster, or the entrance to one. AnnouncedHost is
	// the host at which clients reach the proxy's ports for the nodes; if it is empty, it is the
	// address at which the client has reached the proxy.
	Nodes         ClusterNodes
	AnnouncedHost string
	// ProxyState is the state that this server shares with the other servers of the same proxy. If
	// it is nil, the server creates its own state, with the settings below.
	ProxyState *ProxyState
	// ClientPassword, if set, is the password that clients must log in with before they reach the
	// upstream, where the proxy then logs in for them. It is ignored without an Upstream.
	ClientPassword string
	// Users holds the proxy's own users. If set, clients log in as one of them, at the proxy and
	// not at the upstream.
	Users *users.Users
	// TLS configures TLS for clients. If it is nil, connections are not encrypted.
	TLS *tls.Config
	// Balancers holds the networks of load balancers, which send the address of their client in the
	// PROXY protocol. The proxy accepts that protocol from no other address.
	Balancers []netip.Prefix
	// ProtectedMode refuses clients from other machines while no login is required.
	ProtectedMode bool
	// MaxClients limits how many clients may be connected. The default is 10000, as in Redis.
	MaxClients int
	// DrainTimeout limits the wait of a stopping server for running commands. The default is 0.
	DrainTimeout time.Duration
	// Logger gets the messages for operators. The default discards them.
	Logger *slog.Logger
}

// ClusterNodes knows the nodes of a cluster. A *cluster.Cluster implements it.
type ClusterNodes interface {
	// Map returns the proxy's ports of the known nodes. Refresh asks the cluster for its nodes
	// first.
	Map() *nodes.Map
	Refresh(ctx context.Context) *nodes.Map
	// RequestRefresh requests a refresh of the nodes, and does not wait for it.
	RequestRefresh()
}

// LockLocation reports where the locks are. *quorum.Cluster implements LockLocation, and documents
// the errors of its methods.
type LockLocation interface {
	CurrentLocation() (at quorum.Location, known bool)
	IsLeavingMasters() bool
	LocationChanged() <-chan struct{}
	AwaitLocation(ctx context.Context) (quorum.Location, error)
	Confirm(ctx context.Context) (quorum.Location, error)
	ReportPaused(ctx context.Context, era int, report quorum.PauseReport) error
}
