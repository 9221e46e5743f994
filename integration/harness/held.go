package harness

import (
	"redlock-proxy/quorum/cell"
)

// Held tells what is locked by what a master answered to the GET of a lock's key: the token,
// without what the proxies put before it, or nil where nobody holds the key. What a client that
// locks on the masters itself wrote there is its token.
func Held(reply any) any {
	text, ok := reply.(string)
	if !ok {
		return reply
	}
	if c := cell.Parse(text); c.Value.Present {
		return c.Value.Text
	}
	return nil
}

// Agree reports whether masters that answered so to the GET of one key hold the same: all but the
// ballots that they promised. A plain cell is one in which none was.
func Agree(replies []any) bool {
	for _, reply := range replies {
		if unpromised(reply) != unpromised(replies[0]) {
			return false
		}
	}
	return true
}

// IsOpen reports whether masters that all answered so to the GET of one key leave open whether it
// is held: those that hold it are too few, and would be a majority with those that may have
// forgotten it.
func IsOpen(replies []any) bool {
	holders, barred := map[cell.Attempt]int{}, map[cell.Attempt]int{}
	for _, reply := range replies {
		text, _ := reply.(string)
		switch c := cell.Parse(text); c.Form {
		case cell.Plain, cell.Register:
			holders[c.Attempt]++
		case cell.Blocking:
			barred[c.Attempt]++
		}
	}
	for attempt, n := range barred {
		if held := holders[attempt]; held <= len(replies)/2 && held+n > len(replies)/2 {
			return true
		}
	}
	return false
}

// unpromised is what a master holds under a key, as if no ballot had been promised there.
func unpromised(reply any) string {
	text, _ := reply.(string)
	c := cell.Parse(text)
	if c.Form == cell.Plain {
		c.Form = cell.Register
	}
	c.Promised = ""
	return c.String()
}
