//go:build !linux

package wire

// IsReset is not known here, where no poller tells that an end has come, after which it is asked.
func (c *Conn) IsReset() bool { return false }
