// Package upstream is the Redis that gets every command which is not the proxy's own: how
// connections to it are made for clients, whether it is up, whether it leads back to the proxy,
// and what the proxy asks it on connections of its own.
package upstream
