package availability

import (
	"strings"
	"time"
)

// TrialTime bounds how long a server may take for a trial write.
const TrialTime = time.Second

// Trial is a command that a server refuses or delays exactly when it does so with the SET of a
// lock: out of memory, with too few replicas, read-only, paused, or without the rights. It writes
// nothing, since there is no such key.
func Trial(key string) []any { return []any{"SET", key, "", "XX", "PX", "1"} }

// Refusal returns what the error of a trial write says against writes, or nil. That the answer is
// nil is no error. A server that demands a login, or grants a user too little, says nothing of
// clients that have logins of their own, unless they share this one.
func Refusal(err error, shared bool) error {
	if err == nil || !shared && (strings.HasPrefix(err.Error(), "NOAUTH ") || strings.HasPrefix(err.Error(), "NOPERM ")) {
		return nil
	}
	return err
}
