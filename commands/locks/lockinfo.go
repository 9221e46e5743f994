package locks

import (
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// writeLock appends a lock as a map, with its key unless that is empty. Unknown fields are null. A
// lock that several clients may hold also has the fields slots and holders.
func writeLock(out *command.Reply, l Lock) {
	var fields, votes command.Fields
	if l.Key != "" {
		fields = command.Fields{"key", l.Key}
	}
	for _, s := range l.Votes {
		votes = append(votes, s.Server, s.State)
	}
	fields = append(fields, "state", l.State, "left", remainingMillis(l.RemainingTTL, l.State == statusNames[quorum.StatusHeld]),
		"votes", votes, "waiters", l.Waiters, "fence", valueOrNull(l.Fence, l.Fence > 0))
	fields = append(fields, clientFields(l.GrantTime, l.Addr, l.Name, l.Kept)...)
	if l.Slots != 0 {
		holders := make([]any, len(l.Holders))
		for i, one := range l.Holders {
			holders[i] = append(command.Fields{"left", remainingMillis(one.RemainingTTL, true)}, clientFields(one.GrantTime, one.Addr, one.Name, one.Kept)...)
		}
		fields = append(fields, "slots", valueOrNull(l.Slots, l.Slots > 0), "holders", holders)
	}
	out.Put(fields)
}

// clientFields returns the fields about the client that holds a lock.
func clientFields(since time.Time, addr, name string, kept bool) command.Fields {
	return command.Fields{"since", valueOrNull(since.UnixMilli(), !since.IsZero()),
		"addr", valueOrNull(addr, addr != ""), "name", valueOrNull(name, name != ""), "kept", boolToInt(kept)}
}

// boolToInt returns 1 for true, and 0 for false.
func boolToInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// remainingMillis returns a remaining time in milliseconds; -1 without expiry, null if unknown.
func remainingMillis(left time.Duration, isKnown bool) any {
	if left == quorum.NoExpiry {
		return -1
	}
	return valueOrNull(int64(left/time.Millisecond), isKnown)
}

// valueOrNull returns a value, or null if the value is unknown.
func valueOrNull(value any, known bool) any {
	if !known {
		return nil
	}
	return value
}
