package pubsub

import (
	"fmt"

	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// Refusal is the error for a command of a client that only listens; empty where it may be run, or
// is one that Redis refuses before it looks at that.
func Refusal(words [][]byte) string {
	name := syntax.Lower(words[0])
	switch name {
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "ping", "quit", "reset":
		return ""
	}
	if known := spec.Find(words[0]); known != nil && !syntax.Fits(known.Arity, len(words)) {
		return ""
	}
	return fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", fullName(name, words))
}

// fullName is the name with that of the subcommand, where there is one.
func fullName(name string, words [][]byte) string {
	switch name {
	case "acl", "client", "cluster", "command", "config", "object", "proxy", "pubsub", "script":
		if len(words) > 1 {
			return name + "|" + string(syntax.Shown(syntax.Lower(words[1])))
		}
	}
	return name
}
