package feed

import (
	"net"
	"slices"
	"strings"
	"time"

	"redlock-proxy/internal/resp"
)

// Need is a command that a feed, or who makes use of one, sends to a master.
type Need struct {
	// Words are harmless, and Right is what a user of the master needs for them, in the words of
	// its rules.
	Words []string
	Right string
	// Channel is the rule for the channel that they name; empty: they name none.
	Channel string
}

// Lacking tries commands on a connection, which is of no use afterwards, and returns the rights
// without which these are refused. Other errors, as a server's that is too old, are none of its
// matter.
func Lacking(conn net.Conn, in *resp.Reader, within time.Duration, needs []Need) (rights []string, err error) {
	needs = append([]Need{{Words: []string{"HELLO", "3"}, Right: "+hello"}}, needs...)
	var out []byte
	for _, n := range needs {
		out = resp.AppendWords(out, n.Words...)
	}
	_ = conn.SetDeadline(time.Now().Add(within))
	if _, err := conn.Write(out); err != nil {
		return nil, err
	}
	for _, n := range needs {
		said, _, err := Next(in)
		if err != nil {
			return nil, err
		}
		if right := n.lacking(said); right != "" && !slices.Contains(rights, right) {
			rights = append(rights, right)
		}
	}
	return rights, nil
}

// lacking is the right that is missing by an answer.
func (n Need) lacking(said any) string {
	refusal, _ := said.(resp.Error)
	text, denied := strings.CutPrefix(string(refusal), "NOPERM ")
	switch {
	case denied && n.Channel != "" && strings.Contains(text, "channel"):
		return n.Channel
	case denied && strings.Contains(text, "command"):
		return n.Right
	}
	return "" // also for a key, which locks need as well
}
