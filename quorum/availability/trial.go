package availability

import (
	"strings"
	"time"
)

// TrialTime limits how long a server may take for a trial write.
const TrialTime = time.Second

// Trial returns a command that writes nothing, because its key is absent. A server refuses or
// delays it exactly when it refuses or delays the SET of a lock: out of memory, with too few
// replicas, read-only, paused, or without the rights.
func Trial(key string) []any { return []any{"SET", key, "", "XX", "PX", "1"} }

// Refusal returns the error of a trial write if the server refuses writes, or nil. A nil reply is
// no error. An error about the login or the rights of the proxy's user counts only if shared is
// set, that is, if clients use the same login: clients with logins of their own may have more
// rights.
func Refusal(err error, shared bool) error {
	if err == nil ||
		!shared && (strings.HasPrefix(err.Error(), "NOAUTH ") || strings.HasPrefix(err.Error(), "NOPERM ")) {
		return nil
	}
	return err
}
