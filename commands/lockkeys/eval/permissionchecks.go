package eval

import (
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/rights"
)

// permissionChecks returns the commands with which the proxy asks the upstream whether the client may
// make a call.
func permissionChecks(words []string) [][]string {
	switch name := syntax.Lower(words[0]); name {
	case "time", "ping", "dbsize":
		return [][]string{{name}}
	case "echo", "keys", "scan":
		return [][]string{{name, "0"}}
	case "select":
		return rights.PermissionChecks(words)
	case "publish", "spublish":
		if len(words) == 3 {
			return [][]string{{name, words[1], "0"}}
		}
	default:
		if keyspace.IsSupported(name) {
			return rights.KeyPermissionChecks(words)
		}
	}
	return nil
}

// denial converts the upstream's refusal of a command to Redis' error for the same call within a
// script.
func denial(refusal string) string {
	const user = "ERR The user executing the script can't "
	switch {
	case strings.Contains(refusal, " to run the "):
		return user + "run this command or subcommand"
	case strings.Contains(refusal, "channel"):
		return user + "publish to the channel mentioned in the command"
	case strings.Contains(refusal, " key"):
		return user + "access at least one of the keys mentioned in the command arguments"
	default:
		return user + "run this command or subcommand"
	}
}
