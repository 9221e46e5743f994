package upstream

import (
	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
)

// MayAll reads ACL GETUSER: whether the user may do every command with every key and
// every channel. Redis 6 has lists of patterns in the place of the texts of Redis 7,
// and 6.0 has no channels.
func MayAll(reply []byte) bool {
	user := resp.Texts(reply)
	channels, found := after(user, "channels")
	commands, _ := after(user, "commands")
	keys, _ := after(user, "keys")
	return commands == "+@all" && (keys == "~*" || keys == "*") && (!found || channels == "&*" || channels == "*")
}

// PredatesACL reads INFO: whether this is a Redis before 6, where a login is all.
func PredatesACL(info []byte) bool {
	version := redisinfo.Parse(string(info))["redis_version"]
	return len(version) > 1 && '1' <= version[0] && version[0] < '6' && version[1] == '.'
}

// after is the text after the first one that is this.
func after(texts []string, name string) (next string, found bool) {
	for i, text := range texts {
		if text == name && i+1 < len(texts) {
			return texts[i+1], true
		}
	}
	return "", false
}
