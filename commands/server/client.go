package server

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/tracking"
)

// client is CLIENT with its subcommands.
func client(c command.Call) {
	sub := syntax.Lower(c.Args[1])
	run, known := clientSubcommands[sub]
	switch {
	case c.Client.Track != nil && (sub == "tracking" || sub == "caching"):
		clientTracking(c, sub)
	case !known:
		c.Out.Error(syntax.UnknownSubcommand("CLIENT", c.Args[1]))
	case !syntax.Fits(run.arity, len(c.Args)):
		c.Out.Error(syntax.WrongArity("client|" + sub))
	default:
		run.do(c.Client, c.Args[2:], c.Out)
	}
}

// clientSubcommands is never changed. The arity counts all words.
var clientSubcommands = map[string]struct {
	arity int
	do    func(c *command.Client, args [][]byte, out *command.Reply)
}{
	"id":           {2, func(c *command.Client, _ [][]byte, out *command.Reply) { out.Int(c.ID) }},
	"getname":      {2, clientGetName},
	"setname":      {3, clientSetName},
	"setinfo":      {4, clientSetInfo},
	"info":         {2, func(c *command.Client, _ [][]byte, out *command.Reply) { out.Text(c.Describe()) }},
	"list":         {-2, clientList},
	"reply":        {3, clientReply},
	"capa":         {-3, clientCapa},
	"getredir":     {2, clientGetRedir},
	"kill":         {-3, clientKill},
	"unblock":      {-3, clientUnblock},
	"trackinginfo": {2, clientTrackingInfo},
	"no-evict":     {3, clientOnOff},
	"no-touch":     {3, clientOnOff},
	"help":         {2, clientHelp},
}

// clientTracking is CLIENT TRACKING and CLIENT CACHING.
func clientTracking(c command.Call, sub string) {
	text := ""
	if sub == "tracking" {
		text = setTracking(c)
	} else {
		text = setCaching(c)
	}
	if text != "" {
		c.Out.Error(text)
		return
	}
	c.Out.Status("OK")
}

func setTracking(c command.Call) (refused string) {
	before := c.Client.Tracking.Mode()
	mode, refused := tracking.Parse(syntax.Strings(c.Args))
	if refused == "" {
		refused = mode.After(before)
	}
	switch {
	case refused != "":
		return refused
	case mode.Redirected:
		return "ERR The client ID you want redirect to does not exist"
	case mode.Broadcast:
		return "ERR BCAST of lock keys is not supported: what is read can be tracked"
	case mode.On, before.On:
		c.Client.Tracking = c.Client.Track()
		c.Client.Tracking.Set(mode)
	}
	return ""
}

func setCaching(c command.Call) (refused string) {
	if len(c.Args) != 3 {
		return syntax.WrongArity("client|caching")
	}
	answer := syntax.Folded(c.Args[2])
	if answer != "yes" && answer != "no" {
		return syntax.ErrSyntax
	}
	if refused = c.Client.Tracking.Mode().Caching(answer == "yes"); refused == "" {
		c.Client.Tracking.Caching()
	}
	return refused
}

func clientGetName(c *command.Client, _ [][]byte, out *command.Reply) {
	if c.Name == "" {
		out.Null()
		return
	}
	out.Bulk(c.Name)
}

func clientSetName(c *command.Client, args [][]byte, out *command.Reply) {
	if !rename(c, args[0], out) {
		return
	}
	out.Status("OK")
}

const badName = "ERR Client names cannot contain spaces, newlines or special characters."

// rename sets a client's name if Redis would take it, else answers the error.
func rename(c *command.Client, name []byte, out *command.Reply) bool {
	if !IsClientName(name) {
		out.Error(badName)
		return false
	}
	c.Name = string(name)
	return true
}

// IsClientName reports whether Redis takes it for the name of a client: the characters from ! to ~
// only.
func IsClientName[S ~string | ~[]byte](s S) bool {
	for i := range len(s) {
		if b := s[i]; b < '!' || b > '~' {
			return false
		}
	}
	return true
}

func clientSetInfo(c *command.Client, args [][]byte, out *command.Reply) {
	option := syntax.Lower(args[0])
	switch {
	case option != "lib-name" && option != "lib-ver":
		out.Error(fmt.Sprintf("ERR Unrecognized option '%s'", syntax.CString(args[0], len(args[0]))))
		return
	case !IsClientName(args[1]):
		out.Error(fmt.Sprintf("ERR %s cannot contain spaces, newlines or special characters.", args[0]))
		return
	case option == "lib-name":
		c.LibName = string(args[1])
	default:
		c.LibVer = string(args[1])
	}
	out.Status("OK")
}

func clientReply(c *command.Client, args [][]byte, out *command.Reply) {
	switch mode := syntax.Lower(args[0]); {
	case !c.Silence(mode):
		out.Error(syntax.ErrSyntax)
	case mode == "on":
		out.Status("OK")
	}
}

func clientOnOff(_ *command.Client, args [][]byte, out *command.Reply) {
	switch syntax.Lower(args[0]) {
	case "on", "off":
		out.Status("OK")
	default:
		out.Error(syntax.ErrSyntax)
	}
}

func clientHelp(_ *command.Client, _ [][]byte, out *command.Reply) {
	out.Statuses([]string{
		"CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CAPA <capability> [...]", "    Accepted; has no effect.",
		"GETNAME", "    Return the name of the current connection.",
		"ID", "    Return the ID of the current connection.",
		"GETREDIR", "    Return 0 while the current connection tracks keys, else -1.",
		"INFO", "    Return information about the current client connection.",
		"KILL <option> ...", "    Kill the current connection: a client sees only itself here.",
		"LIST [options ...]", "    The same as INFO: a client sees only itself here.",
		"NO-EVICT (ON|OFF)", "    Accepted; has no effect.",
		"NO-TOUCH (ON|OFF)", "    Accepted; has no effect.",
		"REPLY (ON|OFF|SKIP)", "    Control the replies sent to the current connection.",
		"SETINFO (LIB-NAME|LIB-VER) <value>", "    Set the client library's name or version.",
		"SETNAME <name>", "    Assign the name <name> to the current connection.",
		"HELP", "    Print this help.",
	})
}
