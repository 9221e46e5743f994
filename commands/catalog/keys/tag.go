package keys

import "strings"

// Tag returns the hash tag of a key, as Redis Cluster defines it: the text between its first '{'
// and the first '}' after that. tagged is false if there is no such text. Then the key is its own
// tag.
func Tag(key string) (tag string, tagged bool) {
	_, rest, opened := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	return tag, opened && closed && tag != ""
}
