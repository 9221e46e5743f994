// Package redirect prevents redirects past the proxy, to a server that does not know the lock keys.
// It finds the commands by which clients ask for redirects, and the replies of an upstream that
// name another server. It does no I/O.
package redirect
