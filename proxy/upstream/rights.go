package upstream

import (
	"bytes"
	"slices"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
)

// HasAllPermissions parses a reply to ACL GETUSER, and reports whether the user may run every
// command with every key and channel in every database. It returns false if the reply has a field
// that the proxy does not know, because the field may limit the user.
func HasAllPermissions(reply []byte) bool {
	value, err := resp.NewRESP3Reader(bytes.NewReader(reply), resp.ClientLimits()).ReadValue()
	fields, isList := value.([]any)
	if err != nil || !isList || len(fields)%2 != 0 {
		return false
	}
	seen := map[string]bool{}
	for field := range slices.Chunk(fields, 2) {
		name, isText := field[0].(string)
		if !isText || !isUnlimited(name, field[1]) {
			return false
		}
		seen[name] = true
	}
	// Redis 6.0 has no channels, and only Valkey 9.1 has databases.
	return seen["commands"] && seen["keys"]
}

// isUnlimited reports whether a field of a reply to ACL GETUSER leaves the user all rights.
func isUnlimited(name string, value any) bool {
	switch name {
	case "flags", "passwords", "selectors": // selectors only add rights
		return true
	case "commands":
		return isOneOf(value, "+@all")
	case "keys":
		return isOneOf(value, "~*", "*")
	case "channels":
		return isOneOf(value, "&*", "*")
	case "databases":
		return isOneOf(value, "alldbs")
	}
	return false
}

// isOneOf reports whether a value is one of these texts. Redis 6 returns lists of patterns in place
// of the texts of Redis 7.
func isOneOf(value any, texts ...string) bool {
	if list, isList := value.([]any); isList && len(list) == 1 {
		value = list[0]
	}
	text, isText := value.(string)
	return isText && slices.Contains(texts, text)
}

// PredatesACL parses a reply to INFO, and reports whether the server is a Redis before 6, where
// each login may do everything.
func PredatesACL(info []byte) bool {
	version := redisinfo.Parse(string(info))["redis_version"]
	return len(version) > 1 && '1' <= version[0] && version[0] < '6' && version[1] == '.'
}
