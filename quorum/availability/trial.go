package availability

import (
	"strings"
	"time"
)

// TrialTime limits the duration of a trial write.
const TrialTime = time.Second

// TrialCommand returns a command that writes nothing, because its key is absent. A server refuses
// or delays this command exactly when the server refuses or delays the SET of a lock. Examples are
// a server that is out of memory, has too few replicas, is read-only or paused, or does not permit
// SET.
func TrialCommand(key string) []any { return []any{"SET", key, "", "XX", "PX", "1"} }

// Refusal returns the error of a trial write if the server refuses writes, or nil. A nil reply is
// no error. shared is set if clients use the login of the proxy. Otherwise an error about the login
// or the rights of the proxy's user does not count: clients with their own logins may have more
// rights.
func Refusal(err error, shared bool) error {
	if err == nil ||
		!shared && (strings.HasPrefix(err.Error(), "NOAUTH ") || strings.HasPrefix(err.Error(), "NOPERM ")) {
		return nil
	}
	return err
}
