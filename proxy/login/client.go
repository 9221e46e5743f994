package login

import "redlock-proxy/commands/auth/users"

// Client is the login of one client. It belongs to the goroutine that runs the client's commands.
type Client struct {
	Gate Gate
	// Own is the login as one of the proxy's own users; nil if the proxy has none.
	Own    *users.Login
	Rights Rights
}

// Closed reports whether the client must log in first, at the gate or as one of the proxy's own
// users.
func (c *Client) Closed() bool { return c.Gate.Closed() || c.Own != nil && c.Own.User() == nil }

// MayAll reports whether the client is one of the proxy's own users, and may do everything.
func (c *Client) MayAll() bool {
	if c.Own == nil {
		return false
	}
	user := c.Own.User()
	return user != nil && user.MayAll()
}

// NeedsCheck reports whether each command of the client must be checked before it is forwarded.
func (c *Client) NeedsCheck() bool { return c.Own != nil && !c.MayAll() }

// Refusal returns why one of the proxy's own users may not send a command to the upstream; empty if
// it may. words are the first of its total words.
func (c *Client) Refusal(words [][]byte, total int) string {
	user := c.Own.User()
	if user == nil {
		return NoAuth
	}
	if text := user.CheckBegin(words, total).Error(); text != "" {
		return text
	}
	return user.DeniedReason(words)
}

// DeniedReason returns why the upstream may not run a command that the client may send; empty if it
// may.
func (c *Client) DeniedReason(words [][]byte) string {
	if !c.NeedsCheck() {
		return ""
	}
	user := c.Own.User()
	if user == nil {
		return NoAuth
	}
	return user.DeniedReason(words)
}
