package proxy

import (
	"crypto/tls"
	"time"
)

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
