package keys

import "strings"

// Tag is the hash tag of a key, by the rule of Redis Cluster: what stands between its first '{' and
// the first '}' after that. It is false where there is nothing of the kind; then the key is its own
// tag.
func Tag(key string) (tag string, tagged bool) {
	_, rest, opened := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return tag, opened && closed && tag != ""
}
