package command

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"redlock-proxy/commands/rights"
)

// Client is what a command may know and change of the connection it came from.
// It belongs to the goroutine that runs its commands.
type Client struct {
	// ID is its number, ascending from 1.
	ID int64
	// Addr and LocalAddr are the two ends of its connection.
	Addr, LocalAddr net.Addr
	// Since is when it connected.
	Since time.Time
	// Proto is the protocol it speaks: 2 or 3.
	Proto int
	// DB is the number of the database it has selected.
	DB int
	// Name, LibName and LibVer are what it calls itself.
	Name, LibName, LibVer string
	// Closing is set when the connection is to be closed after the reply.
	Closing bool

	// Watch watches for the client to leave, and ends ctx if it does, until stop is called. Wait
	// ends it when the proxy stops, too: a command calls it before it waits for what others do.
	// They may be nil.
	Watch, Wait func(ctx context.Context) (watched context.Context, stop func())
	// Ask sends the command that is being run to the upstream and gives its whole
	// reply. It is nil for a proxy without an upstream.
	Ask func(ctx context.Context) ([]byte, error)
	// Client is what it may do.
	rights.Client

	// User is who it is at the upstream, where that is known.
	User string

	// Transaction is what it has begun on lock keys, and what it watches there.
	Transaction Transaction

	// Touched is what its commands changed, at a lock server.
	Touched Touched

	// Tracking notifies it of changes of lock keys; nil where it never asked for that.
	Tracking Tracking
	// Track makes it, where lock keys can be tracked; else it is nil.
	Track func() Tracking

	// Outlet takes messages at a lock server; else it is nil.
	Outlet rights.Outlet
	// Subscriptions are those of the client; nil where it never subscribed. Subscribe makes them,
	// where there is an Outlet.
	Subscriptions Subscriptions
	Subscribe     func() Subscriptions
	// Published is the number of its last message there.
	Published uint64

	silence  silence
	identity *Identity
}

// Tracking is what a client has asked for by CLIENT TRACKING: a *tracking.Client, by tracking.Of.
type Tracking interface {
	// Kept returns how many bytes the keys take that the client remembers.
	Kept() int
	// Stop switches it off.
	Stop()
}

// Subscriptions are what a client listens to at a lock server, and the messages that have come: a
// *pubsub.Subscriber.
type Subscriptions interface {
	// Any reports whether there are some.
	Any() bool
	// Kept returns how many bytes they take.
	Kept() int
	// Take gives the messages that have come, and holds back others until Release.
	Take() []byte
	Release()
	// Speak has messages written in a protocol, 2 or 3.
	Speak(proto int)
	// Clear ends all.
	Clear()
}

// Identity is who a client is, as others see it.
type Identity struct {
	Addr       net.Addr
	Name, User string
}

// maxIdentity is how much of a name is shown: it is kept for each lock that the client holds.
const maxIdentity = 128

// Identity is who the client is now.
func (c *Client) Identity() *Identity {
	name, user := c.Name[:min(maxIdentity, len(c.Name))], c.User[:min(maxIdentity, len(c.User))]
	if i := c.identity; i == nil || i.Addr != c.Addr || i.Name != name || i.User != user {
		c.identity = &Identity{Addr: c.Addr, Name: strings.Clone(name), User: strings.Clone(user)}
	}
	return c.identity
}

// silence is CLIENT REPLY's mode.
type silence int

const (
	replyOn silence = iota
	replyOff
	replySkip     // the next command is not answered
	replySkipping // this one is not
)

// WatchFor is Watch, or nothing.
func (c *Client) WatchFor(ctx context.Context) (context.Context, func()) { return orNone(ctx, c.Watch) }

// WaitFor is Wait, or nothing.
func (c *Client) WaitFor(ctx context.Context) (context.Context, func()) { return orNone(ctx, c.Wait) }

func orNone(ctx context.Context, watch func(context.Context) (context.Context, func())) (context.Context, func()) {
	if watch == nil {
		return ctx, func() {}
	}
	return watch(ctx)
}

// Rights are what is known of the client's.
func (c *Client) Rights() *rights.Known {
	known := c.Known()
	if c.Outlet != nil {
		known.Sends(c.Outlet)
	}
	return known
}

// Kept returns how many bytes are kept for the client between its commands.
func (c *Client) Kept() int {
	kept := len(c.Name) + len(c.LibName) + len(c.LibVer) + c.Transaction.Size + c.Transaction.Watched.Size + c.Touched.bytes
	if c.Tracking != nil {
		kept += c.Tracking.Kept()
	}
	if c.Subscriptions != nil {
		kept += c.Subscriptions.Kept()
	}
	return kept
}

// OnlyListens reports whether it gets messages, and may send hardly a command: in RESP2 there is no
// telling a reply from a message.
func (c *Client) OnlyListens() bool {
	return c.Proto == 2 && c.Subscriptions != nil && c.Subscriptions.Any()
}

// Messages puts the messages that have come before what is replied, whatever CLIENT REPLY says, and
// has others wait until the reply is written.
func (c *Client) Messages(out *Reply) {
	if c.Subscriptions != nil {
		out.Raw(c.Subscriptions.Take())
		out.Keep()
		out.WhenDelivered(c.Subscriptions.Release)
	}
}

// Speak has the client speak a protocol, 2 or 3, from the reply on.
func (c *Client) Speak(proto int, out *Reply) {
	c.Messages(out)
	c.Proto, out.Proto = proto, proto
	if c.Subscriptions != nil {
		c.Subscriptions.Speak(proto)
	}
}

// Reset puts back what RESET does.
func (c *Client) Reset(out *Reply) {
	c.Speak(2, out)
	if c.Subscriptions != nil {
		c.Subscriptions.Clear()
	}
	c.DB, c.Name = 0, ""
	c.Transaction = Transaction{}
	if c.Tracking != nil {
		c.Tracking.Stop()
	}
	if c.silence != replySkipping { // which is about this very reply
		c.silence = replyOn
	}
}

// Silence is CLIENT REPLY with a mode in lower case. It reports false for one that there is not.
func (c *Client) Silence(mode string) bool {
	switch {
	case mode == "on":
		c.silence = replyOn
	case mode == "off":
		c.silence = replyOff
	case mode != "skip":
		return false
	case c.silence != replyOff:
		c.silence = replySkip
	}
	return true
}

// Refuse answers a command with an error that begins with its upper-case code.
func (c *Client) Refuse(text string, out *Reply) {
	c.Answer(out, func() { out.Error(text) })
}

// Answer has a command answered. Where CLIENT REPLY has silenced the client, nothing is written.
func (c *Client) Answer(out *Reply, run func()) {
	out.begin(c.Proto)
	run()
	switch c.silence {
	case replyOff, replySkipping:
		out.TakeBack(out.mark)
	}
	switch c.silence {
	case replySkip:
		c.silence = replySkipping
	case replySkipping:
		c.silence = replyOn
	}
}

// Describe is the client's line in CLIENT LIST.
func (c *Client) Describe() string {
	return fmt.Sprintf("id=%d addr=%v laddr=%v name=%s age=%d db=%d resp=%d lib-name=%s lib-ver=%s\n",
		c.ID, c.Addr, c.LocalAddr, c.Name, int(time.Since(c.Since).Seconds()), c.DB, c.Proto, c.LibName, c.LibVer)
}
