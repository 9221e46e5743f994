package pubsub

import (
	"fmt"

	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// Refusal returns the error for a command of a RESP2 client with subscriptions. It is empty if the
// client may send the command, or if Redis would reject the command for a different reason first.
func Refusal(words [][]byte) string {
	name := syntax.Lower(words[0])
	switch name {
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe",
		"ping", "quit", "reset":
		return ""
	}
	if cmd := spec.Find(words[0]); cmd != nil && !syntax.FitsArity(cmd.Arity, len(words)) {
		return ""
	}
	return RestrictedError(words)
}

// RestrictedError returns Redis' error for a command that a RESP2 client with subscriptions may not
// send.
func RestrictedError(words [][]byte) string {
	return fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "+
		"are allowed in this context", fullName(syntax.Lower(words[0]), words))
}

// fullName returns the name of a command with its subcommand, if it has one.
func fullName(name string, words [][]byte) string {
	switch name {
	case "acl", "client", "cluster", "command", "config", "object", "proxy", "pubsub", "script":
		if len(words) > 1 {
			return name + "|" + string(syntax.Excerpt(syntax.Lower(words[1])))
		}
	}
	return name
}
