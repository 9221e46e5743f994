package pushconn

import (
	"net"
	"slices"
	"strings"
	"time"

	"redlock-proxy/internal/resp"
)

// Need describes a command that the user of a push connection sends to a master.
type Need struct {
	// Words is a harmless form of the command. Right is the ACL rule that permits it.
	Words []string
	Right string
	// Channel is the ACL rule for the channel in Words, or empty if there is none.
	Channel string
}

// MissingRights tries commands on a connection, which cannot be used afterwards. It returns the
// rights that the master's user lacks for these commands. It ignores other errors, such as the
// errors of a server that is too old.
func MissingRights(conn net.Conn, in *resp.Reader, timeout time.Duration, needs []Need) (rights []string, err error) {
	needs = append([]Need{{Words: []string{"HELLO", "3"}, Right: "+hello"}}, needs...)
	var out []byte
	for _, n := range needs {
		out = resp.AppendWords(out, n.Words...)
	}
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if _, err := conn.Write(out); err != nil {
		return nil, err
	}
	for _, n := range needs {
		reply, _, err := ReadNext(in)
		if err != nil {
			return nil, err
		}
		if right := n.missingRight(reply); right != "" && !slices.Contains(rights, right) {
			rights = append(rights, right)
		}
	}
	return rights, nil
}

func (n Need) missingRight(reply any) string {
	refusal, _ := reply.(resp.Error)
	text, denied := strings.CutPrefix(string(refusal), "NOPERM ")
	switch {
	case denied && n.Channel != "" && strings.Contains(text, "channel"):
		return n.Channel
	case denied && strings.Contains(text, "command"):
		return n.Right
	}
	return "" // a missing right to a key does not count, because locks also need it
}
