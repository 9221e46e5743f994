package holders

import (
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// write appends what is known of a lock, as a map; with its key, unless that is empty. What is not
// known is null.
func write(out *command.Reply, l Lock) {
	if l.Key == "" {
		out.Map(8)
	} else {
		out.Map(9)
		out.Bulk("key")
		out.Bulk(l.Key)
	}
	out.Bulk("state")
	out.Bulk(l.State)
	out.Bulk("left")
	writeLeft(out, l)
	out.Bulk("votes")
	out.Map(len(l.Votes))
	for _, s := range l.Votes {
		out.Bulk(s.Server)
		out.Bulk(s.Says)
	}
	out.Bulk("waiters")
	out.Int(int64(l.Waiters))
	out.Bulk("fence")
	if l.Fence > 0 {
		out.Int(l.Fence)
	} else {
		out.Null()
	}
	out.Bulk("since")
	if l.Since.IsZero() {
		out.Null()
	} else {
		out.Int(l.Since.UnixMilli())
	}
	out.Bulk("addr")
	writeText(out, l.Addr)
	out.Bulk("name")
	writeText(out, l.Name)
}

// writeLeft appends the remaining time in milliseconds, -1 where there is no end.
func writeLeft(out *command.Reply, l Lock) {
	switch {
	case l.State != statuses[quorum.StatusHeld]:
		out.Null()
	case l.Left == quorum.Endless:
		out.Int(-1)
	default:
		out.Int(int64(l.Left / time.Millisecond))
	}
}

// writeText appends a text, or null for none.
func writeText(out *command.Reply, text string) {
	if text == "" {
		out.Null()
	} else {
		out.Bulk(text)
	}
}
