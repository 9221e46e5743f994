package server

import (
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/tracking"
)

// What a lock server answers to those who look for replicas, a log, or other clients: of these it has none.

// alone is ROLE of a master without replicas.
func alone(c command.Call) { c.Out.Put([]any{"master", 0, []any{}}) }

// waitAOF is WAITAOF local replicas timeout.
func waitAOF(c command.Call) {
	local, _ := syntax.Int(c.Args[1])
	switch refused := syntax.WaitRefusal(c.Args[1:]); {
	case refused != "":
		c.Out.Error(refused)
	case local != 0:
		c.Out.Error("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
	default:
		c.Out.Put([]any{0, 0})
	}
}

// slowlog is SLOWLOG of a log without entries.
var slowlog = command.Subcommands{
	"get": command.Sub(-2, func(c command.Call) {
		count, number := syntax.Int(c.Args[len(c.Args)-1])
		switch {
		case len(c.Args) > 3:
			c.Out.Error(syntax.WrongArity("slowlog|get"))
		case len(c.Args) == 3 && (!number || count < -1):
			c.Out.Error("ERR count should be greater than or equal to -1")
		default:
			c.Out.Array(0)
		}
	}),
	"len":   command.Sub(2, func(c command.Call) { c.Out.Int(0) }),
	"reset": command.Sub(2, func(c command.Call) { c.Out.Status("OK") }),
}

// redirection is what CLIENT GETREDIR returns: nobody can redirect what is tracked.
func redirection(c *command.Client) int {
	if tracking.Of(c).Mode().On {
		return 0
	}
	return -1
}

// clientTrackingInfo is CLIENT TRACKINGINFO.
func clientTrackingInfo(c command.Call) {
	mode, flags := tracking.Of(c.Client).Mode(), []string{"off"}
	if mode.On {
		flags = []string{"on"}
		for _, flag := range []struct {
			name string
			is   bool
		}{{"optin", mode.OptIn}, {"optout", mode.OptOut}, {"noloop", mode.NoLoop}} {
			if flag.is {
				flags = append(flags, flag.name)
			}
		}
	}
	c.Out.Put(command.Fields{"flags", command.Words(flags), "redirect", redirection(c.Client), "prefixes", []any{}})
}

// clientKill is CLIENT KILL of what the client sees: itself, by its address, or by filters that are all true of it.
func clientKill(c *command.Client, words [][]byte, out *command.Reply) {
	if len(words) == 1 {
		if string(words[0]) != c.Addr.String() {
			out.Error("ERR No such client")
			return
		}
		c.Closing = true
		out.Status("OK")
		return
	}
	itself, skips := true, true
	for ; len(words) > 1; words = words[2:] {
		value := string(words[1])
		switch syntax.Lower(words[0]) {
		case "id":
			id, ok := syntax.Int(words[1])
			if !ok || id < 1 {
				out.Error("ERR client-id should be greater than 0")
				return
			}
			itself = itself && id == c.ID
		case "addr":
			itself = itself && value == c.Addr.String()
		case "laddr":
			itself = itself && value == c.LocalAddr.String()
		case "user":
			itself = itself && value == c.User
		case "type":
			is, known := clientTypes[syntax.Lower(words[1])]
			if !known {
				out.Error("ERR Unknown client type '" + value + "'")
				return
			}
			itself = itself && is
		case "skipme":
			if skips = syntax.Lower(words[1]) == "yes"; !skips && syntax.Lower(words[1]) != "no" {
				out.Error(syntax.ErrSyntax)
				return
			}
		default:
			out.Error(syntax.ErrSyntax)
			return
		}
	}
	if len(words) > 0 {
		out.Error(syntax.ErrSyntax)
		return
	}
	if c.Closing = itself && !skips; c.Closing {
		out.Int(1)
		return
	}
	out.Int(0)
}

// clientTypes are the kinds of clients, and whether one that can ask is of that kind.
var clientTypes = map[string]bool{"normal": true, "master": false, "replica": false, "slave": false, "pubsub": false}

// clientUnblock is CLIENT UNBLOCK id [TIMEOUT | ERROR]: of others the client sees none, and itself is not blocked.
func clientUnblock(_ *command.Client, words [][]byte, out *command.Reply) {
	switch _, ok := syntax.Int(words[0]); {
	case len(words) > 2 || len(words) == 2 && syntax.Lower(words[1]) != "timeout" && syntax.Lower(words[1]) != "error":
		out.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	case !ok:
		out.Error(syntax.ErrNotInteger)
	default:
		out.Int(0)
	}
}

// clientList lists the client itself and nobody else, if it is of the kind or has one of the numbers that are asked for.
func clientList(c *command.Client, words [][]byte, out *command.Reply) {
	listed := len(words) == 0
	switch {
	case listed:
	case len(words) == 2 && syntax.Lower(words[0]) == "type":
		is, known := clientTypes[syntax.Lower(words[1])]
		if !known {
			out.Error("ERR Unknown client type '" + string(words[1]) + "'")
			return
		}
		listed = is
	case len(words) > 1 && syntax.Lower(words[0]) == "id":
		for _, word := range words[1:] {
			if _, ok := syntax.Int(word); !ok {
				out.Error("ERR Invalid client ID")
				return
			}
			listed = listed || string(word) == strconv.FormatInt(c.ID, 10)
		}
	default:
		out.Error(syntax.ErrSyntax)
		return
	}
	if !listed {
		out.Text("")
		return
	}
	out.Text(c.Describe())
}
