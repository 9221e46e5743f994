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

// Options are what a server works with. Table must be set.
type Options struct {
	// Table holds the commands that the proxy answers itself.
	Table *commands.Table
	// Unmoved is the table for as long as the locks are at the Upstream, and Places tell where they
	// are. They are nil where the locks are never moved. Without an upstream there are Places
	// alone: others move the locks, and are told that nothing need be held back here.
	Unmoved *commands.Table
	Places  Places
	// Upstream gets what is not in the table. Without one the proxy is a lock server.
	Upstream *upstream.Upstream
	// ClientPassword, if there is one, is what clients must log in with before they get
	// to the upstream, where the proxy then logs in for them. It is not looked at without
	// an Upstream.
	ClientPassword string
	// Users are those of the proxy's own, whom clients then log in as, here and not at the
	// upstream. It is nil where there are none.
	Users *users.Users
	// TLS are the settings with which clients are spoken to. Without them nothing is encrypted.
	TLS *tls.Config
	// Balancers are networks of load balancers, which say by the PROXY protocol for whom they
	// connect. From elsewhere it is not taken.
	Balancers []netip.Prefix
	// ProtectedMode turns clients from other machines away while nobody has to log in.
	ProtectedMode bool
	// MaxClients is how many clients may be connected. The default is 10000, as in
	// Redis.
	MaxClients int
	// DrainTimeout is how long a stopping server lets run what runs. The default is
	// none at all.
	DrainTimeout time.Duration
	// Logger gets what an operator should know. The default is silence.
	Logger *slog.Logger
}

const defaultMaxClients = 10000

// Settings are what of the [Options] may change while a server runs.
type Settings struct {
	// ClientPassword is that of the Options. A client that is in stays in, as at a Redis whose
	// password is changed; one that has still to log in does so with the new one, or, where there
	// is none any more, with the old one.
	ClientPassword string
	// TLS and ProtectedMode are those of the Options. They are for clients that connect from now
	// on.
	TLS           *tls.Config
	ProtectedMode bool
	// MaxClients is that of the Options. Where more are connected, none is sent away, and none is
	// added.
	MaxClients int
	// DrainTimeout is that of the Options.
	DrainTimeout time.Duration
	// HeldInput is how many bytes all clients together may have held of commands that are not
	// complete, and kept between commands: who would take more is disconnected. Unread is how many
	// of replies they may leave unread: who has done so for longest is disconnected. The defaults
	// are 256 MB each.
	HeldInput, Unread int64
}

// Places tell where the locks are: a *quorum.Cluster, whose methods say the errors.
type Places interface {
	Placed() (at quorum.Placed, known bool)
	Departing() bool
	Turned() <-chan struct{}
	Resting(ctx context.Context) (quorum.Placed, error)
	Confirm(ctx context.Context) (quorum.Placed, error)
	SayHeld(ctx context.Context, era int, held quorum.Held) error
}
