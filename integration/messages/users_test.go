//go:build integration

package messages

import (
	"os"
	"path/filepath"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestUsers checks that the proxy's own users subscribe and publish according to their rules, even
// in scripts and transactions. They lose their connection when a permission is withdrawn.
func TestUsers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.acl")
	writeRules := func(text string) {
		kit.Must(t, os.WriteFile(file, []byte("user default off\nuser op on >sesame ~* &* +@all\n"+text+"\n"), 0o600))
	}
	writeRules("user app on >wonder ~lock:* &app:* +@all")
	masters := redistest.URLs(kit.StartMasters(t))
	proxy := kit.StartProxy(t, masters, "--lock-keys", "lock:*", "--guard=false", "--acl-file", file)
	client, op := kit.Connect(t, proxy), kit.Connect(t, proxy)
	const channelPermissionError = "NOPERM this user has no permissions to access one of the channels used as arguments"
	for _, step := range [][2]string{
		{"SUBSCRIBE app:x", "NOAUTH"}, {"PUBLISH app:x 1", "NOAUTH"}, {"AUTH app wonder", "OK"},
		{"SUBSCRIBE app:x other", channelPermissionError}, {"PSUBSCRIBE *", channelPermissionError},
		{"SSUBSCRIBE other", channelPermissionError}, {"PUBLISH other 1", channelPermissionError}, {"SPUBLISH other 1", channelPermissionError},
		{"PUBLISH app:x 1", "0"}, {"SET lock:k v", "OK"},
		{"EVAL|redis.call('del',KEYS[1]) return redis.call('publish','other','x')|1|lock:k",
			"ERR The user executing the script can't publish to the channel mentioned in the command"},
		{"GET lock:k", "v"}, {"MULTI", "OK"}, {"PUBLISH app:x 1", "QUEUED"}, {"PUBLISH other 1", channelPermissionError},
		{"EXEC", "EXECABORT"},
		{"EVAL|redis.call('del',KEYS[1]) return redis.call('publish','app:x','x')|1|lock:k", "1"}, {"GET lock:k", "nil"},
	} {
		kit.WantPrefix(t, client, step[0], step[1])
	}
	kit.Want(t, op, "OK", "AUTH", "op", "sesame")
	wantNext(t, client, []any{"subscribe", "app:x", int64(1)}, "SUBSCRIBE", "app:x")
	wantNext(t, client, []any{"psubscribe", "app:*", int64(2)}, "PSUBSCRIBE", "app:*")
	kit.Want(t, op, int64(2), "PUBLISH", "app:x", "1")
	wantNext(t, client, []any{"message", "app:x", "1"})
	wantNext(t, client, []any{"pmessage", "app:*", "app:x", "1"})
	writeRules("user app on >wonder ~lock:* &app:y +@all")
	kit.Want(t, op, "OK", "ACL", "LOAD")
	wantEnd(t, client)
	kit.Want(t, op, int64(0), "PUBLISH", "app:x", "2")
}
