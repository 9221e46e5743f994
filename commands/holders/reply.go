package holders

import (
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// statuses are the words for what stands under a key.
var statuses = map[quorum.Status]string{
	quorum.StatusFree: "free", quorum.StatusHeld: "held", quorum.StatusSplit: "split", quorum.StatusUnclear: "unclear",
}

// write appends what is known of a lock, as a map; with its key, unless that is empty. What is not
// known is null.
func write(out *command.Reply, key string, h quorum.Holding) {
	if key == "" {
		out.Map(8)
	} else {
		out.Map(9)
		out.Bulk("key")
		out.Bulk(key)
	}
	out.Bulk("state")
	out.Bulk(statuses[h.Status])
	out.Bulk("left")
	writeLeft(out, h)
	out.Bulk("votes")
	out.Map(len(h.Shares))
	for _, s := range h.Shares {
		out.Bulk(s.Server)
		out.Bulk(s.Says)
	}
	out.Bulk("waiters")
	out.Int(int64(h.Waiters))
	out.Bulk("fence")
	if h.Fence > 0 {
		out.Int(h.Fence)
	} else {
		out.Null()
	}
	who, known := h.Holder.(*command.Identity)
	out.Bulk("since")
	if known {
		out.Int(h.Since.UnixMilli())
	} else {
		out.Null()
	}
	writeWho(out, who)
}

// writeLeft appends the remaining time in milliseconds, -1 where there is no end.
func writeLeft(out *command.Reply, h quorum.Holding) {
	switch {
	case h.Status != quorum.StatusHeld:
		out.Null()
	case h.Left == quorum.Endless:
		out.Int(-1)
	default:
		out.Int(int64(h.Left / time.Millisecond))
	}
}

// writeWho appends the client that took a lock, if it is known.
func writeWho(out *command.Reply, who *command.Identity) {
	out.Bulk("addr")
	if who == nil || who.Addr == nil {
		out.Null()
	} else {
		out.Bulk(who.Addr.String())
	}
	out.Bulk("name")
	if who == nil || who.Name == "" {
		out.Null()
	} else {
		out.Bulk(who.Name)
	}
}
