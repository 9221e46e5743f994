// Package admin serves what operators and their machines ask a proxy: whether it lives, whether it
// is ready, its metrics and, where that is wanted, profiles. It knows nothing of the proxy: what it
// tells comes from functions and a handler that it is given.
//
// There is no login. So nothing is changed here by any request, and nothing secret is told: no
// key, no token, no client, no password.
package admin
