// Package admin serves what operators and their machines ask a proxy: whether it lives, whether it
// is ready, its metrics, a page for people and, where that is wanted, profiles. It knows nothing of
// the proxy: what it tells comes from functions and handlers that it is given.
//
// There is no login. So nothing is changed here by any request, and nothing secret is shown: no
// token, no password, and no key and no client but on the page, where that is wanted.
package admin
