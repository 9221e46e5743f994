//go:build integration

package lockkeys

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestSortOfSeveralKeys: what SORT cannot do with lock keys is refused, wherever it is sent, and what a SORT would read of other
// keys stays unread.
func TestSortOfSeveralKeys(t *testing.T) {
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t)
	plain := kit.Connect(t, kit.StartProxy(t, masters, kit.LockKeyArgs(upstream)...))
	const other = "ERR SORT of a lock key by or with other keys: 'w_*' names keys that are not known beforehand"
	for _, step := range []struct{ command, want string }{
		{"RPUSH lock:l 2 1", "2"}, {"RPUSH l 2 1", "2"}, {"MSET w_1 2 w_2 1", "OK"}, {"SORT l BY w_*", "[2 1]"},
		{"SORT lock:l BY w_*", other}, {"SORT lock:l GET w_*", other}, {"SORT lock:l GET # GET w_* STORE lock:l", other},
		{"MULTI", "OK"}, {"SORT lock:l BY w_*", "QUEUED"}, {"SORT lock:l", "QUEUED"}, {"EXEC", "[" + other},
		{"EVAL|return redis.pcall('sort', KEYS[1], 'BY', 'w_*').err|1|lock:l", other},
		{"EVAL|return redis.call('sort_ro', KEYS[1], 'DESC', 'GET', '#')|1|lock:l", "[2 1]"},
		{"SORT lock:l STORE l", "ERR 'sort' names lock keys and others"}, {"SORT l STORE lock:l", "ERR 'sort' names lock keys and others"},
		{"SORT lock:l STORE lock:m", "ERR lock keys 'lock:m' and 'lock:l' cannot be changed together"}, {"SORT lock:l STORE lock:l", "2"}, {"LRANGE lock:l 0 -1", "[1 2]"},
	} {
		kit.Does(t, plain, step.command, step.want)
	}
	kit.Does(t, plain, "DEL lock:l", "1")
}
