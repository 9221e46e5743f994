package commands

import (
	"context"
	"fmt"
	"net"
	"time"
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
	// Closing is set when the connection is to be closed behind the reply.
	Closing bool

	// Watch watches for the client to leave, and ends ctx if it does, until stop is
	// called. A command calls it before it waits. It may be nil.
	Watch func(ctx context.Context) (watched context.Context, stop func())
	// Ask sends the command that is being run to the upstream and gives its whole
	// reply. It is nil for a proxy without an upstream.
	Ask func(ctx context.Context) ([]byte, error)

	silence silence
	last    lastSet
	watched watched
	multi   multiState
}

// silence is CLIENT REPLY's mode.
type silence int

const (
	replyOn silence = iota
	replyOff
	replySkip     // the next command is not answered
	replySkipping // this one is not
)

// watch is Watch, or nothing.
func (c *Client) watch(ctx context.Context) (context.Context, func()) {
	if c.Watch == nil {
		return ctx, func() {}
	}
	return c.Watch(ctx)
}

// reset puts back what RESET does.
func (c *Client) reset() {
	c.Proto, c.DB, c.Name = 2, 0, ""
	c.EndMulti()
	if c.silence != replySkipping { // which is about this very reply
		c.silence = replyOn
	}
}

// cmdClient is CLIENT with its subcommands.
func (t *Table) cmdClient(_ context.Context, c *Client, args [][]byte, out *Reply) {
	sub := lower(args[1])
	run, known := clientSubcommands[sub]
	switch {
	case !known:
		unknownSubcommand("CLIENT", args[1], out)
	case !fits(run.arity, len(args)):
		out.Error(fmt.Sprintf("ERR wrong number of arguments for 'client|%s' command", sub))
	default:
		run.do(c, args[2:], out)
	}
}

// clientSubcommands is never changed. The arity counts all words.
var clientSubcommands = map[string]struct {
	arity int
	do    func(c *Client, args [][]byte, out *Reply)
}{
	"id":       {2, func(c *Client, _ [][]byte, out *Reply) { out.Int(c.ID) }},
	"getname":  {2, clientGetName},
	"setname":  {3, clientSetName},
	"setinfo":  {4, clientSetInfo},
	"info":     {2, func(c *Client, _ [][]byte, out *Reply) { out.Text(c.describe()) }},
	"list":     {-2, clientList},
	"reply":    {3, clientReply},
	"no-evict": {3, clientOnOff},
	"no-touch": {3, clientOnOff},
	"help":     {2, clientHelp},
}

func clientGetName(c *Client, _ [][]byte, out *Reply) {
	if c.Name == "" {
		out.Null()
		return
	}
	out.Bulk(c.Name)
}

// clientList lists the client itself and nobody else; it takes no TYPE and no ID.
func clientList(c *Client, options [][]byte, out *Reply) {
	if len(options) > 0 {
		out.Error(errSyntax.Error())
		return
	}
	out.Text(c.describe())
}

func clientSetName(c *Client, args [][]byte, out *Reply) {
	if !c.rename(args[0], out) {
		return
	}
	out.Status("OK")
}

// rename sets the name if Redis would take it, else answers the error.
func (c *Client) rename(name []byte, out *Reply) bool {
	if !printable(name) {
		out.Error("ERR Client names cannot contain spaces, newlines or special characters.")
		return false
	}
	c.Name = string(name)
	return true
}

// printable is true of the characters from ! to ~ only.
func printable(s []byte) bool {
	for _, b := range s {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

func clientSetInfo(c *Client, args [][]byte, out *Reply) {
	option := lower(args[0])
	switch {
	case option != "lib-name" && option != "lib-ver":
		out.Error(fmt.Sprintf("ERR Unrecognized option '%s'", cString(args[0], len(args[0]))))
		return
	case !printable(args[1]):
		out.Error(fmt.Sprintf("ERR %s cannot contain spaces, newlines or special characters.", args[0]))
		return
	case option == "lib-name":
		c.LibName = string(args[1])
	default:
		c.LibVer = string(args[1])
	}
	out.Status("OK")
}

func clientReply(c *Client, args [][]byte, out *Reply) {
	switch lower(args[0]) {
	case "on":
		c.silence = replyOn
		out.Status("OK")
	case "off":
		c.silence = replyOff
	case "skip":
		if c.silence != replyOff {
			c.silence = replySkip
		}
	default:
		out.Error("ERR syntax error")
	}
}

func clientOnOff(_ *Client, args [][]byte, out *Reply) {
	switch lower(args[0]) {
	case "on", "off":
		out.Status("OK")
	default:
		out.Error("ERR syntax error")
	}
}

func clientHelp(_ *Client, _ [][]byte, out *Reply) {
	out.Statuses([]string{
		"CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"GETNAME", "    Return the name of the current connection.",
		"ID", "    Return the ID of the current connection.",
		"INFO", "    Return information about the current client connection.",
		"LIST", "    The same: a client sees only itself here.",
		"NO-EVICT (ON|OFF)", "    Accepted; has no effect.",
		"NO-TOUCH (ON|OFF)", "    Accepted; has no effect.",
		"REPLY (ON|OFF|SKIP)", "    Control the replies sent to the current connection.",
		"SETINFO (LIB-NAME|LIB-VER) <value>", "    Set the client library's name or version.",
		"SETNAME <name>", "    Assign the name <name> to the current connection.",
		"HELP", "    Print this help.",
	})
}

// describe is the client's line in CLIENT LIST.
func (c *Client) describe() string {
	return fmt.Sprintf("id=%d addr=%v laddr=%v name=%s age=%d db=%d resp=%d lib-name=%s lib-ver=%s\n",
		c.ID, c.Addr, c.LocalAddr, c.Name, int(time.Since(c.Since).Seconds()), c.DB, c.Proto, c.LibName, c.LibVer)
}
