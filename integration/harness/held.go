package harness

import (
	"redlock-proxy/quorum/cell"
)

// HeldToken returns the token in a master's reply to the GET of a lock key, without the prefix of
// the proxies. It returns nil if the key is not held. If a client locks on the masters directly,
// the whole value is the token. HeldToken returns an error reply unchanged.
func HeldToken(reply any) any {
	text, ok := reply.(string)
	if !ok {
		return reply
	}
	if c := cell.Parse(text); c.Value.Present {
		return c.Value.Text
	}
	return nil
}

// SameCells reports whether masters with these replies to the GET of a key have the same cell,
// except for promised ballots. A plain cell has no promised ballot.
func SameCells(replies []any) bool {
	for _, reply := range replies {
		if stripPromise(reply) != stripPromise(replies[0]) {
			return false
		}
	}
	return true
}

// IsUndetermined reports whether the masters cannot decide if a key is held. replies holds the
// replies of all masters to the GET of the key. The key is undetermined if a minority holds it, but
// a majority either holds it or may have forgotten it.
func IsUndetermined(replies []any) bool {
	holders, blocking := map[cell.Attempt]int{}, map[cell.Attempt]int{}
	for _, reply := range replies {
		text, _ := reply.(string)
		switch c := cell.Parse(text); c.Form {
		case cell.Plain, cell.Register:
			holders[c.Attempt]++
		case cell.Blocking:
			blocking[c.Attempt]++
		}
	}
	for attempt, n := range blocking {
		if held := holders[attempt]; held <= len(replies)/2 && held+n > len(replies)/2 {
			return true
		}
	}
	return false
}

// stripPromise returns a cell as text, without its promised ballot.
func stripPromise(reply any) string {
	text, _ := reply.(string)
	c := cell.Parse(text)
	if c.Form == cell.Plain {
		c.Form = cell.Register
	}
	c.Promised = ""
	return c.String()
}
