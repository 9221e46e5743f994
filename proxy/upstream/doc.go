// Package upstream connects to the Redis that gets all commands except the proxy's own. It makes
// connections for clients, checks that the Redis is up and does not lead back to the proxy, and
// sends internal commands, which the proxy itself needs, on separate connections.
package upstream
