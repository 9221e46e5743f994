package locks

import (
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// writeLock appends a lock as a map, with its key unless that is empty. Unknown fields are null.
func writeLock(out *command.Reply, l Lock) {
	var fields, votes command.Fields
	if l.Key != "" {
		fields = command.Fields{"key", l.Key}
	}
	for _, s := range l.Votes {
		votes = append(votes, s.Server, s.State)
	}
	out.Put(append(fields, "state", l.State, "left", remainingMillis(l), "votes", votes, "waiters", l.Waiters,
		"fence", valueOrNull(l.Fence, l.Fence > 0), "since", valueOrNull(l.GrantTime.UnixMilli(), !l.GrantTime.IsZero()),
		"addr", valueOrNull(l.Addr, l.Addr != ""), "name", valueOrNull(l.Name, l.Name != ""), "kept", boolToInt(l.Kept)))
}

// boolToInt returns 1 for true, and 0 for false.
func boolToInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// remainingMillis returns the remaining time in milliseconds; -1 without expiry, null if unknown.
func remainingMillis(l Lock) any {
	if l.RemainingTTL == quorum.NoExpiry {
		return -1
	}
	return valueOrNull(int64(l.RemainingTTL/time.Millisecond), l.State == statusNames[quorum.StatusHeld])
}

// valueOrNull returns a value, or null if the value is unknown.
func valueOrNull(value any, known bool) any {
	if !known {
		return nil
	}
	return value
}
