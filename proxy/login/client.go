package login

import "redlock-proxy/commands/auth/users"

// Client is the login of one client. It belongs to the goroutine that runs its commands.
type Client struct {
	Gate Gate
	// Own is where the users are the proxy's own; else nil.
	Own    *users.Login
	Rights Rights
}

// Closed reports whether nothing but a login is let through, be it that of the gate or of a user of
// the proxy's own.
func (c *Client) Closed() bool { return c.Gate.Closed() || c.Own != nil && c.Own.User() == nil }

// MayAll reports whether the client is a user of the proxy's own that may do everything.
func (c *Client) MayAll() bool {
	if c.Own == nil {
		return false
	}
	user := c.Own.User()
	return user != nil && user.MayAll()
}

// IsJudged reports whether each command of the client is to be looked at before it is forwarded.
func (c *Client) IsJudged() bool { return c.Own != nil && !c.MayAll() }

// Refusal says why a user of the proxy's own may not have a command forwarded, of so many words of
// which the first ones are given.
func (c *Client) Refusal(words [][]byte, total int) string {
	user := c.Own.User()
	if user == nil {
		return NoAuth
	}
	if text := user.CheckBegin(words, total).Error(); text != "" {
		return text
	}
	return user.Beyond(words)
}

// DeniedReason says why the upstream may not carry out a command that the client may send.
func (c *Client) DeniedReason(words [][]byte) string {
	if !c.IsJudged() {
		return ""
	}
	user := c.Own.User()
	if user == nil {
		return NoAuth
	}
	return user.Beyond(words)
}
