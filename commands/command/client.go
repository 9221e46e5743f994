package command

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"redlock-proxy/commands/rights"
)

// Client holds the state of a connection that a command may read and change. It belongs to the
// goroutine that runs the connection's commands.
type Client struct {
	// ID is the number of the connection, ascending from 1.
	ID int64
	// Addr and LocalAddr are the two ends of the connection.
	Addr, LocalAddr net.Addr
	// ConnectedAt is the time at which the client connected.
	ConnectedAt time.Time
	// Proto is the protocol that the client speaks: 2 or 3.
	Proto int
	// DB is the number of the selected database.
	DB int
	// Name, LibName and LibVer are the names that the client gave itself.
	Name, LibName, LibVer string
	// Closing is set if the proxy must close the connection after the reply.
	Closing bool

	// Watch returns a context that ends when the client disconnects. stop ends the watch. Wait does
	// the same for a command that waits for another client. The context of Wait also ends when the
	// proxy stops. Both may be nil.
	Watch, Wait func(ctx context.Context) (watchCtx context.Context, stop func())
	// HasDisconnected reports whether the client has closed its connection, or its sending side.
	// Any goroutine may call it. HasDisconnected is nil if the connection cannot detect this.
	HasDisconnected func() bool
	// Ask sends the current command to the upstream and returns the whole reply. It is nil without
	// an upstream.
	Ask func(ctx context.Context) ([]byte, error)
	// ListsKey reports whether commands on all keys return or remove this lock key at the client's
	// port, because each lock key belongs to one node of a cluster. ListsKey is nil if these
	// commands affect all lock keys.
	ListsKey func(key string) bool
	// Client checks the client's permissions.
	rights.Client

	// User is the client's user at the upstream, if known.
	User string

	// Transaction is the client's transaction on lock keys, and the lock keys that it watches.
	Transaction Transaction

	// ChangedKeys holds the lock keys that the client's commands may have changed, at a lock
	// server.
	ChangedKeys ChangedKeys

	// Tracking reports changes of lock keys to the client. It is nil until the client requests
	// tracking.
	Tracking Tracking
	// NewTracking returns a new Tracking. It is nil if lock keys cannot be tracked.
	NewTracking func() Tracking

	// KeptLocks holds the locks that the proxy renews for the client. It is nil until the client
	// sends KEEPALIVE. NewKeptLocks returns new KeptLocks. It is nil if the proxy cannot renew
	// locks for this connection.
	KeptLocks    KeptLocks
	NewKeptLocks func() KeptLocks
	// ReserveMemory counts the growth of Size against the memory limit of all clients. It fails if
	// the growth exceeds the limit. ReserveMemory may be nil.
	ReserveMemory func() error

	// Publisher publishes messages at a lock server. It is nil on any other proxy.
	Publisher rights.Outlet
	// Subscriptions holds the client's subscriptions, or nil before the first subscription.
	// NewSubscriptions returns new Subscriptions. NewSubscriptions is nil without a Publisher.
	Subscriptions    Subscriptions
	NewSubscriptions func() Subscriptions
	// LastMessage is the number of the client's last message to the Publisher.
	LastMessage uint64

	// waitingBytes counts the memory, in bytes, for the wait of the current command.
	waitingBytes int
	replyMode    replyMode
	identity     *Identity
}

// ListedKeys filters lock keys. It returns the keys that commands on all keys return or remove at
// the client's port.
func (c *Client) ListedKeys(keys []string) []string {
	if c.ListsKey == nil {
		return keys
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !c.ListsKey(key) })
}

// Tracking holds the state of CLIENT TRACKING. *tracking.Client implements it, and tracking.Of
// returns it.
type Tracking interface {
	// Size returns the size of the keys that the client has read, in bytes.
	Size() int
	// Stop switches tracking off.
	Stop()
}

// KeptLocks holds the locks that the proxy renews for a client. *keepalive.Holder implements it,
// and keepalive.Of returns it.
type KeptLocks interface {
	// Size returns the memory of the kept locks, in bytes.
	Size() int
	// Clear stops keeping the locks. It releases none.
	Clear()
}

// Subscriptions holds the subscriptions of a client at a lock server, and the messages that have
// arrived for the client. *pubsub.Subscriber implements it.
type Subscriptions interface {
	// HasSubscriptions reports whether there is a subscription.
	HasSubscriptions() bool
	// Size returns the size of the subscriptions, in bytes.
	Size() int
	// Take returns the messages that have arrived, and delays later messages until Release.
	Take() []byte
	Release()
	// SetProto sets the protocol of the messages: 2 or 3.
	SetProto(proto int)
	// Clear ends all subscriptions.
	Clear()
}

// Identity describes a client to other clients and in logs.
type Identity struct {
	Addr       net.Addr
	Name, User string
}

// maxIdentity limits the length of a name, in bytes. Each lock of the client keeps the name.
const maxIdentity = 128

// Identity returns the current description of the client.
func (c *Client) Identity() *Identity {
	name, user := c.Name[:min(maxIdentity, len(c.Name))], c.User[:min(maxIdentity, len(c.User))]
	if i := c.identity; i == nil || i.Addr != c.Addr || i.Name != name || i.User != user {
		c.identity = &Identity{Addr: c.Addr, Name: strings.Clone(name), User: strings.Clone(user)}
	}
	return c.identity
}

// replyMode holds the mode of CLIENT REPLY.
type replyMode int

const (
	replyOn replyMode = iota
	replyOff
	replySkip     // the next command gets no reply
	replySkipping // the current command gets no reply
)

// WatchContext calls Watch, if it is set.
func (c *Client) WatchContext(ctx context.Context) (context.Context, func()) {
	return callIfSet(ctx, c.Watch)
}

// WaitContext calls Wait, if it is set, for a command that waits at keys for other clients. Until
// the caller calls stop, Size includes the memory of the wait.
func (c *Client) WaitContext(ctx context.Context, keys ...string) (waitCtx context.Context, stop func()) {
	for _, key := range keys {
		c.waitingBytes += waitSize + len(key)
	}
	waitCtx, stopWait := callIfSet(ctx, c.Wait)
	return waitCtx, func() {
		c.waitingBytes = 0
		stopWait()
	}
}

// waitSize is the memory of a wait for a key in addition to its name, in bytes.
const waitSize = 1 << 10

func callIfSet(ctx context.Context, watch func(context.Context) (context.Context, func())) (context.Context, func()) {
	if watch == nil {
		return ctx, func() {}
	}
	return watch(ctx)
}

// Rights returns an empty record of the client's permissions, for one command, script or
// transaction.
func (c *Client) Rights() *rights.Permissions {
	permissions := c.NewPermissions()
	if c.Publisher != nil {
		permissions.SetOutlet(c.Publisher)
	}
	return permissions
}

// Size returns the size of the client's state between two commands, or while a command waits, in
// bytes.
func (c *Client) Size() int {
	size := len(c.Name) + len(c.LibName) + len(c.LibVer)
	size += c.Transaction.QueuedBytes + c.Transaction.Watched.Size + c.ChangedKeys.bytes + c.waitingBytes
	if c.Tracking != nil {
		size += c.Tracking.Size()
	}
	if c.KeptLocks != nil {
		size += c.KeptLocks.Size()
	}
	if c.Subscriptions != nil {
		size += c.Subscriptions.Size()
	}
	return size
}

// OnlyListens reports whether the client receives messages in RESP2. Such a client may send only a
// few commands, because RESP2 does not distinguish a message from a reply.
func (c *Client) OnlyListens() bool {
	return c.Proto == 2 && c.Subscriptions != nil && c.Subscriptions.HasSubscriptions()
}

// WriteMessages writes the arrived messages before the reply, in any mode of CLIENT REPLY. It
// delays later messages until the client has got the reply.
func (c *Client) WriteMessages(out *Reply) {
	if c.Subscriptions != nil {
		out.WriteRaw(c.Subscriptions.Take())
		out.Protect()
		out.OnDelivered(c.Subscriptions.Release)
	}
}

// SetProto switches the client to a protocol, 2 or 3, from this reply on.
func (c *Client) SetProto(proto int, out *Reply) {
	c.WriteMessages(out)
	c.Proto, out.Proto = proto, proto
	if c.Subscriptions != nil {
		c.Subscriptions.SetProto(proto)
	}
}

// Reset resets the client as RESET does.
func (c *Client) Reset(out *Reply) {
	c.SetProto(2, out)
	if c.Subscriptions != nil {
		c.Subscriptions.Clear()
	}
	c.DB, c.Name = 0, ""
	c.Transaction = Transaction{}
	if c.Tracking != nil {
		c.Tracking.Stop()
	}
	if c.KeptLocks != nil {
		c.KeptLocks.Clear()
	}
	if c.replyMode != replySkipping { // the current reply stays silent
		c.replyMode = replyOn
	}
}

// SetReplyMode sets the mode of CLIENT REPLY, given in lower case. It returns false for an unknown
// mode.
func (c *Client) SetReplyMode(mode string) bool {
	switch {
	case mode == "on":
		c.replyMode = replyOn
	case mode == "off":
		c.replyMode = replyOff
	case mode != "skip":
		return false
	case c.replyMode != replyOff:
		c.replyMode = replySkip
	}
	return true
}

// Refuse answers a command with an error. text begins with its upper-case code.
func (c *Client) Refuse(text string, out *Reply) {
	c.Answer(out, func() { out.WriteError(text) })
}

// Answer calls run, which writes the reply. It removes the reply if CLIENT REPLY silences it.
func (c *Client) Answer(out *Reply, run func()) {
	out.begin(c.Proto)
	run()
	switch c.replyMode {
	case replyOff, replySkipping:
		out.Truncate(out.replyStart)
	}
	switch c.replyMode {
	case replySkip:
		c.replyMode = replySkipping
	case replySkipping:
		c.replyMode = replyOn
	}
}

// Describe returns the client's line in CLIENT LIST.
func (c *Client) Describe() string {
	return fmt.Sprintf("id=%d addr=%v laddr=%v name=%s age=%d db=%d resp=%d lib-name=%s lib-ver=%s\n",
		c.ID, c.Addr, c.LocalAddr, c.Name, int(time.Since(c.ConnectedAt).Seconds()), c.DB, c.Proto, c.LibName, c.LibVer)
}
