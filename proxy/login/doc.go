// Package login tracks a client's user and permissions. It does no I/O except by an [Upstream].
// There are three ways to log in. At the upstream, clients log in as on any Redis (rights.go). If
// the proxy logs in at the upstream for its clients, they log in with a password at the proxy
// (passwordlogin.go). The proxy may also have its own users (package users). A [Client] holds the
// login of one client, in any of these ways.
package login
