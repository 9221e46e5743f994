//go:build !linux

package netconn

import "net"

// setTCPUserTimeout does nothing: the system limits that time itself.
func setTCPUserTimeout(*net.TCPConn) {}
