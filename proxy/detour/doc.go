// Package detour keeps clients from being led past the proxy, to a server that knows nothing of
// their lock keys: it finds the commands by which they ask for that, and what an upstream sends
// that names another server. It does no I/O.
package detour
