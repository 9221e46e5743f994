package login

import "redlock-proxy/commands/auth/users"

// Client holds the login of one client. It belongs to the goroutine that runs the client's
// commands.
type Client struct {
	PasswordLogin PasswordLogin
	// UserLogin is the login as one of the proxy's own users; nil if the proxy has none.
	UserLogin *users.Login
	Rights    Rights
}

// MustLogIn reports whether the client must log in first, with a password at the proxy or as one of
// the proxy's own users.
func (c *Client) MustLogIn() bool {
	return c.PasswordLogin.MustLogIn() || c.UserLogin != nil && c.UserLogin.User() == nil
}

// HasAllPermissions reports whether the client is one of the proxy's own users with all
// permissions.
func (c *Client) HasAllPermissions() bool {
	if c.UserLogin == nil {
		return false
	}
	user := c.UserLogin.User()
	return user != nil && user.HasAllPermissions()
}

// NeedsCheck reports whether each command of the client must be checked before it is forwarded.
func (c *Client) NeedsCheck() bool { return c.UserLogin != nil && !c.HasAllPermissions() }

// Refusal returns the reason why one of the proxy's own users may not send a command to the
// upstream, or "" if the user may send it. words holds the first words of the command, and total is
// the number of all its words.
func (c *Client) Refusal(words [][]byte, total int) string {
	user := c.UserLogin.User()
	if user == nil {
		return NoAuth
	}
	if text := user.CheckPrefix(words, total).Error(); text != "" {
		return text
	}
	return user.DeniedReason(words)
}

// DeniedReason returns the reason why a command that the client may send must not run at the
// upstream; empty if it may run there.
func (c *Client) DeniedReason(words [][]byte) string {
	if !c.NeedsCheck() {
		return ""
	}
	user := c.UserLogin.User()
	if user == nil {
		return NoAuth
	}
	return user.DeniedReason(words)
}
