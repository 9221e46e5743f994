// Package admin serves the admin port of a proxy: liveness, readiness, metrics, a status page and,
// if enabled, profiles. It does not depend on the proxy: its caller passes the functions and
// handlers that return the responses.
//
// The port has no login. So no request changes anything, and no response contains a token or a
// password. Only the status page can show keys and clients, if the operator enables it.
package admin
