//go:build !linux

package netconn

import "net"

// limitUnacknowledged does nothing: the system limits that time itself.
func limitUnacknowledged(*net.TCPConn) {}
