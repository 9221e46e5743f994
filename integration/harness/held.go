package harness

import (
	"redlock-proxy/quorum/cell"
)

// Held tells what is locked by what a master answered to the GET of a lock's key: the token, without what the proxies put before it,
// or nil where nobody holds the key. What a client that locks on the masters itself wrote there is its token.
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
