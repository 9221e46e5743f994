package availability

import (
	"strings"
	"time"
)

// TrialTime limits how long a server may take for a trial write.
const TrialTime = time.Second

// Trial returns a command that writes nothing, because its key is absent. A server refuses or
// delays it exactly when it does so with the SET of a lock: out of memory, with too few replicas,
// read-only, paused, or without the rights.
func Trial(key string) []any { return []any{"SET", key, "", "XX", "PX", "1"} }

// Refusal returns the error of a trial write if it says that the server refuses writes, or nil. A
// nil answer is no error. An error about the login or the rights of this user says nothing about
// clients with logins of their own. It counts only if shared says that they use the same login.
func Refusal(err error, shared bool) error {
	if err == nil ||
		!shared && (strings.HasPrefix(err.Error(), "NOAUTH ") || strings.HasPrefix(err.Error(), "NOPERM ")) {
		return nil
	}
	return err
}
