package upstream

import (
	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
)

// MayAll parses a reply to ACL GETUSER, and reports whether the user may run every command with
// every key and channel. Redis 6 has lists of patterns in place of the texts of Redis 7, and 6.0
// has no channels.
func MayAll(reply []byte) bool {
	user := resp.Texts(reply)
	channels, found := valueAfter(user, "channels")
	commands, _ := valueAfter(user, "commands")
	keys, _ := valueAfter(user, "keys")
	return commands == "+@all" && (keys == "~*" || keys == "*") && (!found || channels == "&*" || channels == "*")
}

// PredatesACL parses a reply to INFO, and reports whether the server is a Redis before 6, where
// each login may do everything.
func PredatesACL(info []byte) bool {
	version := redisinfo.Parse(string(info))["redis_version"]
	return len(version) > 1 && '1' <= version[0] && version[0] < '6' && version[1] == '.'
}

// valueAfter returns the text that follows the first text equal to name.
func valueAfter(texts []string, name string) (next string, found bool) {
	for i, text := range texts {
		if text == name && i+1 < len(texts) {
			return texts[i+1], true
		}
	}
	return "", false
}
