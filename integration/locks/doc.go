// Package locks tests LOCK, UNLOCK and EXTEND: acquire, extend and release, clients that wait and
// disconnect, masters that fail, and permissions. It checks that two clients never hold one lock at
// the same time. The tests need the build tag integration.
package locks
