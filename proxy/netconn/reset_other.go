//go:build !linux

package netconn

// IsReset returns false. It is called after a poller has reported an end, and there is no poller.
func (c *Conn) IsReset() bool { return false }
