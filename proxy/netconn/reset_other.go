//go:build !linux

package netconn

// IsReset returns false. It is needed only if a poller reports the end of a stream, and this system
// has no poller.
func (c *Conn) IsReset() bool { return false }
