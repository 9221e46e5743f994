package proxy

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/netip"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/auth/users"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum"
)

// Options configures a server. Table must be set.
type Options struct {
	// Table holds the commands that the proxy answers itself.
	Table *commands.Table
	// UpstreamTable holds the proxy's commands while the locks are at the Upstream. LockLocation
	// reports where the locks are. Both are nil if the locks never move. Without an Upstream only
	// LockLocation is set, and this proxy reports no connections.
	UpstreamTable *commands.Table
	LockLocation  LockLocation
	// Upstream gets the commands that are not in the table. If it is nil, the proxy is a lock
	// server.
	Upstream *upstream.Upstream
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

const defaultMaxClients = 10000

// Settings holds the part of [Options] that may change while a server runs.
type Settings struct {
	// ClientPassword is as in Options. A client that has logged in stays logged in, as at a Redis
	// whose password is changed. Other clients log in with the new password or, if it is empty,
	// with the old password.
	ClientPassword string
	// TLS and ProtectedMode are as in Options. They apply to clients that connect from now on.
	TLS           *tls.Config
	ProtectedMode bool
	// MaxClients is as in Options. If more clients are connected, they stay connected.
	MaxClients int
	// DrainTimeout is as in Options.
	DrainTimeout time.Duration
	// MaxInputMemory limits the memory for all clients together: for incomplete commands, and for
	// data kept between commands. The proxy disconnects a client that would exceed it.
	// MaxUnreadMemory limits the bytes of replies that all clients together leave unread. If these
	// bytes exceed the limit, the proxy disconnects the client whose replies have been unread for
	// the longest time. The defaults are 256 MB each.
	MaxInputMemory, MaxUnreadMemory int64
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
