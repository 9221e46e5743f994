// Package lockkeys tests Redis' own commands on lock keys. Their replies must be the replies of a
// single Redis, and their histories must be possible with a single Redis. It also tests clients
// that move from a single Redis to the proxy. The tests need the build tag integration.
package lockkeys
