package server

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/tracking"
)

// client implements CLIENT with its subcommands.
func client(c command.Call) {
	if sub := syntax.Lower(c.Args[1]); c.Client.NewTracking != nil && (sub == "tracking" || sub == "caching") {
		clientTracking(c, sub)
		return
	}
	clientSubcommands.Run(c)
}

var clientSubcommands = command.Subcommands{
	"id":      command.Sub(2, func(c command.Call) { c.Out.WriteInt(c.Client.ID) }),
	"getname": command.Sub(2, clientGetName),
	"setname": command.Sub(3, clientSetName),
	"setinfo": command.Sub(4, clientHandler(clientSetInfo)),
	"info":    command.Sub(2, func(c command.Call) { c.Out.WriteText(c.Client.Describe()) }),
	// A client does not see other clients.
	"list":  command.Sub(2, func(c command.Call) { c.Out.WriteText(c.Client.Describe()) }),
	"reply": command.Sub(3, clientReply),
	// The capabilities of the client have no effect.
	"capa":     command.Sub(-3, func(c command.Call) { c.Out.WriteStatus("OK") }),
	"no-evict": command.Sub(3, clientOnOff),
	"no-touch": command.Sub(3, clientOnOff),
	"help":     clientHelp,
}

// clientHandler returns the function of a subcommand. It passes the words after the subcommand's
// name to run.
func clientHandler(run func(c *command.Client, words [][]byte, out *command.Reply)) func(command.Call) {
	return func(c command.Call) { run(c.Client, c.Args[2:], c.Out) }
}

// clientTracking implements CLIENT TRACKING and CLIENT CACHING.
func clientTracking(c command.Call, sub string) {
	text := ""
	if sub == "tracking" {
		text = setTracking(c)
	} else {
		text = setCaching(c)
	}
	if text != "" {
		c.Out.WriteError(text)
		return
	}
	c.Out.WriteStatus("OK")
}

func setTracking(c command.Call) (errorText string) {
	before := tracking.Of(c.Client).Mode()
	mode, errorText := tracking.Parse(syntax.Strings(c.Args))
	if errorText == "" {
		errorText = mode.SwitchError(before)
	}
	switch {
	case errorText != "":
		return errorText
	case mode.Redirected:
		return "ERR The client ID you want redirect to does not exist"
	case mode.Broadcast:
		return "ERR BCAST of lock keys is not supported: only keys that the client reads can be tracked; " +
			"leave BCAST out"
	case mode.On, before.On:
		c.Client.Tracking = c.Client.NewTracking()
		tracking.Of(c.Client).SetMode(mode)
	}
	return ""
}

func setCaching(c command.Call) (errorText string) {
	if len(c.Args) != 3 {
		return syntax.WrongArity("client|caching")
	}
	answer := syntax.LowerCString(c.Args[2])
	if answer != "yes" && answer != "no" {
		return syntax.ErrSyntax
	}
	if errorText = tracking.Of(c.Client).Mode().CachingError(answer == "yes"); errorText == "" {
		tracking.Of(c.Client).RequestCaching()
	}
	return errorText
}

func clientGetName(c command.Call) {
	if c.Client.Name == "" {
		c.Out.WriteNull()
		return
	}
	c.Out.WriteBulk(c.Client.Name)
}

func clientSetName(c command.Call) {
	if setClientName(c.Client, c.Args[2], c.Out) {
		c.Out.WriteStatus("OK")
	}
}

const errClientName = "ERR Client names cannot contain spaces, newlines or special characters."

// setClientName sets a client's name if Redis accepts it, else replies with the error.
func setClientName(c *command.Client, name []byte, out *command.Reply) bool {
	if !IsClientName(name) {
		out.WriteError(errClientName)
		return false
	}
	c.Name = string(name)
	return true
}

// IsClientName reports whether Redis accepts a client's name: only characters from ! to ~.
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
		out.WriteError(fmt.Sprintf("ERR Unrecognized option '%s'", syntax.CString(args[0], len(args[0]))))
		return
	case !IsClientName(args[1]):
		out.WriteError(fmt.Sprintf("ERR %s cannot contain spaces, newlines or special characters.", args[0]))
		return
	case option == "lib-name":
		c.LibName = string(args[1])
	default:
		c.LibVer = string(args[1])
	}
	out.WriteStatus("OK")
}

func clientReply(c command.Call) {
	switch mode := syntax.Lower(c.Args[2]); {
	case !c.Client.SetReplyMode(mode):
		c.Out.WriteError(syntax.ErrSyntax)
	case mode == "on":
		c.Out.WriteStatus("OK")
	}
}

func clientOnOff(c command.Call) {
	switch syntax.Lower(c.Args[2]) {
	case "on", "off":
		c.Out.WriteStatus("OK")
	default:
		c.Out.WriteError(syntax.ErrSyntax)
	}
}

var clientHelp = command.Help(
	"CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
	"CAPA <capability> [...]", "    Accepted; has no effect.",
	"GETNAME", "    Return the name of the current connection.",
	"ID", "    Return the ID of the current connection.",
	"INFO", "    Return information about the current client connection.",
	"LIST", "    Return the same as INFO: a client sees only itself.",
	"NO-EVICT (ON|OFF)", "    Accepted; has no effect.",
	"NO-TOUCH (ON|OFF)", "    Accepted; has no effect.",
	"REPLY (ON|OFF|SKIP)", "    Control the replies sent to the current connection.",
	"SETINFO (LIB-NAME|LIB-VER) <value>", "    Set the client library's name or version.",
	"SETNAME <name>", "    Assign the name <name> to the current connection.",
	"HELP", "    Print this help.",
)
