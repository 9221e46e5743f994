package locks

import (
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// write appends what is known of a lock, as a map; with its key, unless that is empty. What is not
// known is null.
func write(out *command.Reply, l Lock) {
	var fields, votes command.Fields
	if l.Key != "" {
		fields = command.Fields{"key", l.Key}
	}
	for _, s := range l.Votes {
		votes = append(votes, s.Server, s.Says)
	}
	out.Put(append(fields, "state", l.State, "left", left(l), "votes", votes, "waiters", l.Waiters,
		"fence", orNull(l.Fence, l.Fence > 0), "since", orNull(l.Since.UnixMilli(), !l.Since.IsZero()),
		"addr", orNull(l.Addr, l.Addr != ""), "name", orNull(l.Name, l.Name != "")))
}

// left is the remaining time in milliseconds, -1 where there is no end.
func left(l Lock) any {
	if l.Left == quorum.Endless {
		return -1
	}
	return orNull(int64(l.Left/time.Millisecond), l.State == statuses[quorum.StatusHeld])
}

// orNull is a value, or null where it is not known.
func orNull(value any, known bool) any {
	if !known {
		return nil
	}
	return value
}
