// Package login is who a client is, and what it may do, without I/O but by an [Upstream] that it is
// given. There are three sources: the upstream, where clients log in as on any Redis (rights.go); a
// password of the proxy's own, where that logs in at the upstream for them (gate.go); and users of
// the proxy's own (package users). client.go has the questions that all of them answer.
package login
